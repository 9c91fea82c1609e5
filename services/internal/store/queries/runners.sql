-- Runners, as runner-api sees them. All run inside store.Tx of the org, but the
-- two look-ups that find the org.

-- name: RunnerOrgOf :one
-- The org that an id belongs to, before any org is set; empty when unknown.
SELECT coalesce(berth.org_of(sqlc.arg(object_id)::text), '')::text;

-- name: RunnerOrgOfSecret :one
-- The org that the hash of a credential belongs to; empty when unknown.
SELECT coalesce(berth.org_of_secret(sqlc.arg(kind)::text, sqlc.arg(hash)::bytea), '')::text;

-- name: RunnerByID :one
-- Who a runner is, to check a signature with.
SELECT id, org_id, install_id, kind, state, public_key, epoch, slots, switch
FROM runners WHERE id = sqlc.arg(id);

-- name: RunnerLock :one
-- Takes the runner's row until the transaction ends. Everything that a runner
-- writes does this first: its requests come one after the other, and none of an
-- older session comes after a newer one was opened.
SELECT id, org_id, install_id, kind, state, public_key, epoch
FROM runners WHERE id = sqlc.arg(id)
FOR NO KEY UPDATE;

-- name: RunnerEnrolled :exec
-- The runner has this key from now on.
UPDATE runners
SET state = 'active', public_key = sqlc.arg(public_key)::text, seal_recipient = sqlc.arg(seal_recipient)::text,
    version = sqlc.arg(version), facts = sqlc.arg(facts), last_seen_at = now()
WHERE id = sqlc.arg(id);

-- name: RunnerVoidEpoch :exec
-- No session of this runner is the current one until it opens the next.
UPDATE runners SET epoch = epoch + 1 WHERE id = sqlc.arg(id);

-- name: RunnerStarted :one
-- A new life of the runner's process; returns its epoch.
UPDATE runners
SET epoch = epoch + 1, version = sqlc.arg(version), slots = sqlc.arg(slots), trust = sqlc.arg(trust),
    switch = sqlc.arg(switch), facts = sqlc.arg(facts), last_seen_at = now()
WHERE id = sqlc.arg(id)
RETURNING epoch;

-- name: RunnerReports :exec
-- The switch that a claim reports, when it is another than before.
UPDATE runners SET switch = sqlc.arg(switch) WHERE id = sqlc.arg(id);

-- name: RunnerPresence :many
-- One statement for all runners of the org that called since the last time:
-- writes that they were seen (at most every fresh_seconds each), and reads what
-- a lost notification would have told: their epoch, whether work waits, and the
-- version of their settings.
WITH late AS (
    SELECT r.id FROM runners r
    WHERE r.id = ANY (sqlc.arg(ids)::text[])
      AND (r.last_seen_at IS NULL OR r.last_seen_at < now() - make_interval(secs => sqlc.arg(fresh_seconds)::float8))
    ORDER BY r.id
    FOR NO KEY UPDATE SKIP LOCKED
), seen AS (
    UPDATE runners r SET last_seen_at = now() FROM late WHERE r.id = late.id
)
SELECT r.id, r.epoch, r.state,
       EXISTS (SELECT FROM runner_jobs j
               WHERE j.org_id = r.org_id AND j.runner_id = r.id AND j.state = 'queued'
                 AND j.cancel_requested_at IS NULL)::boolean AS queued,
       coalesce((SELECT max(v.version) FROM settings_versions v
                 WHERE v.org_id = r.org_id AND v.install_id = r.install_id), 0)::bigint AS settings_version
FROM runners r
WHERE r.id = ANY (sqlc.arg(ids)::text[]);

-- name: RunnerAddKey :exec
-- Keeps the public half of a key that a runner enrolled with.
INSERT INTO keys (id, org_id, install_id, purpose, algorithm, key_id, public_key)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.narg(install_id), sqlc.arg(purpose), sqlc.arg(algorithm), sqlc.arg(key_id), sqlc.arg(public_key))
ON CONFLICT (org_id, key_id) DO NOTHING;
