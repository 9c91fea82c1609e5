-- Leases: granted by RunnerClaimJobs.

-- name: RunnerLeasesToRenew :many
-- The leases of this runner that a renewal names, with what decides on them.
SELECT l.id, l.job_id, l.attempt, l.state, l.session_id,
       j.state AS job_state, j.attempt AS job_attempt, j.mutates, j.fence,
       (j.cancel_requested_at IS NOT NULL)::boolean AS cancel_requested,
       coalesce(r.fence, 0)::bigint AS resource_fence
FROM leases l
JOIN runner_jobs j ON j.org_id = l.org_id AND j.id = l.job_id
LEFT JOIN resources r ON r.org_id = j.org_id AND r.id = j.resource_id
WHERE l.runner_id = sqlc.arg(runner_id) AND l.job_id = ANY (sqlc.arg(job_ids)::text[]) AND l.state IN ('active', 'lost');

-- name: RunnerExtendLeases :one
-- Renews them all on the clock of the database; a lost one is active again. What
-- the engine of each does is the JSON at the same place of the list, '' for nothing.
WITH extended AS (
    UPDATE leases SET state = 'active', expires_at = now() + make_interval(secs => sqlc.arg(lease_seconds)::float8),
        progress = nullif(k.progress, '')::jsonb, progress_at = CASE WHEN k.progress <> '' THEN now() END
    FROM (SELECT unnest(sqlc.arg(ids)::text[]) AS id, unnest(sqlc.arg(progress)::text[]) AS progress) k
    WHERE leases.id = k.id AND leases.state IN ('active', 'lost')
)
SELECT (now() + make_interval(secs => sqlc.arg(lease_seconds)::float8))::timestamptz AS expires_at;

-- name: RunnerResumeLeases :one
-- Hands leases over to a newer session of the same runner, renewed.
WITH resumed AS (
    UPDATE leases SET state = 'active', session_id = sqlc.arg(session_id),
        expires_at = now() + make_interval(secs => sqlc.arg(lease_seconds)::float8)
    WHERE id = ANY (sqlc.arg(ids)::text[]) AND state IN ('active', 'lost')
)
SELECT (now() + make_interval(secs => sqlc.arg(lease_seconds)::float8))::timestamptz AS expires_at;

-- name: RunnerEndLease :exec
-- The attempt is over: reported, or shown dead.
UPDATE leases SET state = 'ended', ended_at = now(), end_reason = sqlc.arg(reason)::text, progress = NULL, progress_at = NULL
WHERE id = sqlc.arg(id) AND state IN ('active', 'lost');

-- name: RunnerLoseLeases :execrows
-- Their time is over. That is no proof of anything: the runner may renew them.
UPDATE leases SET state = 'lost'
WHERE id = ANY (sqlc.arg(ids)::text[]) AND state = 'active' AND expires_at < now();

-- name: RunnerExpiryTurn :one
-- One replica looks for expired leases at a time.
SELECT pg_try_advisory_xact_lock(hashtextextended('berth.lease_expiry', 0))::boolean AS mine;

-- name: RunnerExpiredLeases :one
-- Active leases of all orgs whose time is over, as 'org lease', oldest first.
SELECT berth.expired_leases(sqlc.arg(most)::int)::text[] AS leases;

-- name: RunnerNextExpiry :one
-- In how many seconds the next active lease of any org ends; negative when one
-- has, a day when there is none.
SELECT coalesce((SELECT extract(epoch FROM e - now())::float8 FROM berth.next_lease_expiry() e), 86400)::float8 AS seconds;
