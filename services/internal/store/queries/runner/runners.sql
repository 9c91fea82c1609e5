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
SELECT id, org_id, install_id, kind, state, public_key, epoch, session_opening, disputed_since, disputed_reason
FROM runners WHERE id = sqlc.arg(id)
FOR NO KEY UPDATE;

-- name: RunnerEnrolled :exec
-- The runner has this key from now on, and who held the one before does not matter
-- any more.
UPDATE runners
SET state = 'active', public_key = sqlc.arg(public_key)::text, seal_recipient = sqlc.arg(seal_recipient)::text,
    version = sqlc.arg(version), facts = sqlc.arg(facts), last_seen_at = now(),
    session_opening = NULL, disputed_since = NULL, disputed_reason = NULL
WHERE id = sqlc.arg(id);

-- name: RunnerVoidEpoch :exec
-- No session of this runner is the current one until it opens the next.
UPDATE runners SET epoch = epoch + 1 WHERE id = sqlc.arg(id);

-- name: RunnerStarted :one
-- A new life of the runner's process; returns its epoch. An agent that names no
-- opening leaves the one that is known.
UPDATE runners
SET epoch = epoch + 1, version = sqlc.arg(version), slots = sqlc.arg(slots), trust = sqlc.arg(trust),
    switch = sqlc.arg(switch), switch_reason = sqlc.narg(switch_reason),
    switch_since = coalesce(sqlc.narg(switch_since), CASE WHEN switch = sqlc.arg(switch) THEN switch_since ELSE now() END),
    facts = sqlc.arg(facts), last_seen_at = now(),
    session_opening = coalesce(sqlc.narg(opening), session_opening)
WHERE id = sqlc.arg(id)
RETURNING epoch;

-- name: RunnerDisputed :one
-- Another process holds the runner's key, from the first time that this showed.
UPDATE runners SET disputed_since = coalesce(disputed_since, now()), disputed_reason = coalesce(disputed_reason, sqlc.arg(reason)::text)
WHERE id = sqlc.arg(id)
RETURNING disputed_since::timestamptz AS since, disputed_reason::text AS reason;

-- name: RunnerReports :exec
-- The switch and the problem that a claim reports, when they are others than
-- before; an empty problem is none. A switch without a time is as old as its
-- first report.
UPDATE runners
SET switch = sqlc.arg(switch), switch_reason = sqlc.narg(switch_reason),
    switch_since = coalesce(sqlc.narg(switch_since), CASE WHEN switch = sqlc.arg(switch) THEN switch_since ELSE now() END),
    facts = CASE WHEN sqlc.arg(problem)::text = '' THEN facts - 'problem'
                 ELSE facts || jsonb_build_object('problem', sqlc.arg(problem)::text) END
WHERE id = sqlc.arg(id);

-- name: RunnersPresent :many
-- One statement for all runners that called since the last time, of all orgs
-- and before any org is set: see berth.runners_present.
SELECT p.id::text AS id, p.epoch::bigint AS epoch, p.active::boolean AS active, p.queued::boolean AS queued,
       p.settings_version::bigint AS settings_version
FROM berth.runners_present(sqlc.arg(ids)::text[], sqlc.arg(fresh_seconds)::float8) p;

-- name: RunnerRetireKeys :exec
-- The runner's present keys are not used any more, but for those that the next
-- machine has too.
UPDATE keys k SET retired_at = now()
FROM runners r
WHERE r.id = sqlc.arg(runner_id) AND k.purpose IN ('runner', 'seal') AND k.retired_at IS NULL
  AND k.public_key IN (r.public_key, r.seal_recipient)
  AND k.public_key <> ALL (sqlc.arg(kept)::text[]);

-- name: RunnerAddKey :exec
-- Keeps the public half of a key that a runner enrolled with. A machine that
-- comes back brings its retired keys back to use.
INSERT INTO keys (id, org_id, install_id, purpose, algorithm, key_id, public_key)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.narg(install_id), sqlc.arg(purpose), sqlc.arg(algorithm), sqlc.arg(key_id), sqlc.arg(public_key))
ON CONFLICT (org_id, key_id) DO UPDATE SET retired_at = NULL
WHERE keys.purpose = excluded.purpose AND keys.install_id IS NOT DISTINCT FROM excluded.install_id AND keys.retired_at IS NOT NULL;
