-- Runner jobs, as runner-api moves them. The runner's row is locked before
-- (RunnerLock).

-- name: RunnerClaimJobs :many
-- Leases up to `slots` queued jobs, oldest first, or finds those that this claim
-- has leased already. For each it opens a log stream and mints a log token: the
-- ids and hashes are made by the caller, one per slot. Jobs that somebody else
-- has locked just now (a cancel) are left for the next look.
WITH again AS (
    SELECT l.job_id, l.attempt, l.stream_id, l.expires_at
    FROM leases l
    WHERE l.runner_id = sqlc.arg(runner_id) AND l.claim_id = sqlc.arg(claim_id)
      AND l.session_id = sqlc.arg(session_id) AND l.state IN ('active', 'lost')
    ORDER BY l.job_id LIMIT sqlc.arg(slots)::int
), picked AS (
    SELECT j.id, j.queued_at
    FROM runner_jobs j
    WHERE j.runner_id = sqlc.arg(runner_id) AND j.state = 'queued' AND j.cancel_requested_at IS NULL
      AND (sqlc.arg(may_mutate)::boolean OR NOT j.mutates)
      AND NOT EXISTS (SELECT FROM again)
    ORDER BY j.queued_at, j.id LIMIT sqlc.arg(slots)::int
    FOR UPDATE SKIP LOCKED
), numbered AS (
    SELECT p.id, row_number() OVER (ORDER BY p.queued_at, p.id) AS n FROM picked p
), leased AS (
    UPDATE runner_jobs j SET state = 'leased', attempt = j.attempt + 1, leased_at = now()
    FROM numbered p WHERE j.id = p.id
    RETURNING j.id, j.attempt, j.install_id, j.build_id, p.n
), granted AS (
    INSERT INTO leases (id, org_id, job_id, runner_id, session_id, attempt, claim_id, stream_id, expires_at)
    SELECT (sqlc.arg(lease_ids)::text[])[j.n], berth.current_org(), j.id, sqlc.arg(runner_id), sqlc.arg(session_id), j.attempt,
           sqlc.arg(claim_id), (sqlc.arg(stream_ids)::text[])[j.n], now() + make_interval(secs => sqlc.arg(lease_seconds)::float8)
    FROM leased j
    RETURNING job_id, attempt, stream_id, expires_at
), streams AS (
    INSERT INTO log_streams (id, org_id, install_id, job_id, attempt)
    SELECT (sqlc.arg(stream_ids)::text[])[j.n], berth.current_org(), j.install_id, j.id, j.attempt FROM leased j
), building AS (
    UPDATE builds b SET state = 'running', started_at = coalesce(b.started_at, now())
    FROM leased j WHERE b.id = j.build_id AND b.state = 'queued'
), offered AS (
    SELECT o.*, row_number() OVER (ORDER BY o.job_id) AS n
    FROM (SELECT *, false AS again FROM granted UNION ALL SELECT *, true FROM again) o
), tokens AS (
    INSERT INTO log_tokens (hash, org_id, stream_id, runner_id, session_id, expires_at)
    SELECT (sqlc.arg(token_hashes)::bytea[])[o.n], berth.current_org(), o.stream_id, sqlc.arg(runner_id), sqlc.arg(session_id),
           now() + make_interval(secs => sqlc.arg(token_seconds)::float8)
    FROM offered o
)
SELECT o.job_id, o.attempt::int AS attempt, o.stream_id, o.expires_at, o.n::int AS n, o.again::boolean AS again,
       j.operation, j.spec, j.signed_order, j.fence, j.trace,
       extract(epoch FROM now() - j.queued_at)::float8 AS waited_seconds
FROM offered o JOIN runner_jobs j ON j.id = o.job_id
ORDER BY j.queued_at, j.id;

-- name: RunnerAttempt :one
-- A job of this runner with the lease of one attempt, locked. lease_state is
-- empty when there never was that attempt.
SELECT j.id, j.runner_id, j.install_id, j.build_id, j.change_id, j.workflow_id, j.resource_id, j.action_run_id, j.operation, j.mutates,
       j.state, j.fence, j.attempt, (j.cancel_requested_at IS NOT NULL)::boolean AS cancel_requested,
       coalesce(j.result, '{}')::jsonb AS result,
       coalesce(l.id, '')::text AS lease_id, coalesce(l.state, '')::text AS lease_state,
       coalesce(l.session_id, '')::text AS lease_session_id,
       coalesce(r.fence, 0)::bigint AS resource_fence
FROM runner_jobs j
LEFT JOIN leases l ON l.org_id = j.org_id AND l.job_id = j.id AND l.attempt = sqlc.arg(attempt)::int
LEFT JOIN resources r ON r.org_id = j.org_id AND r.id = j.resource_id
WHERE j.id = sqlc.arg(job_id) AND j.runner_id = sqlc.arg(runner_id)
FOR UPDATE OF j;

-- name: RunnerOpenAttempts :many
-- All attempts of this runner that are leased, with their jobs locked.
SELECT j.id, j.install_id, j.build_id, j.workflow_id, j.operation, j.mutates, j.fence, j.attempt,
       (j.cancel_requested_at IS NOT NULL)::boolean AS cancel_requested,
       l.id AS lease_id, l.stream_id,
       coalesce(r.fence, 0)::bigint AS resource_fence
FROM runner_jobs j
JOIN leases l ON l.org_id = j.org_id AND l.job_id = j.id AND l.state IN ('active', 'lost')
LEFT JOIN resources r ON r.org_id = j.org_id AND r.id = j.resource_id
WHERE j.runner_id = sqlc.arg(runner_id) AND j.state = 'leased'
ORDER BY j.id
FOR UPDATE OF j;

-- name: RunnerSetPlan :exec
-- What the plan of the present attempt would do, apart from the result to come.
-- denied says which policies of the vendor deny it, null for none; a later plan says it again.
-- unjudged says so of a plan that was held against none, and counts where the order had some.
UPDATE runner_jobs SET result = (coalesce(result, '{}') - 'denied') || jsonb_build_object('plan', sqlc.arg(plan)::jsonb)
    || CASE WHEN sqlc.narg(denied)::jsonb IS NOT NULL THEN jsonb_build_object('denied', sqlc.narg(denied)::jsonb)
            WHEN sqlc.narg(unjudged)::jsonb IS NOT NULL AND spec::jsonb ? 'policies' THEN jsonb_build_object('denied', sqlc.narg(unjudged)::jsonb)
            ELSE '{}'::jsonb END
WHERE id = sqlc.arg(id);

-- name: RunnerFinishJob :exec
-- The job has ended; the members of result are added to what is there.
UPDATE runner_jobs
SET state = sqlc.arg(state), result = coalesce(result, '{}') || sqlc.arg(result)::jsonb, error = sqlc.narg(error), finished_at = now()
WHERE id = sqlc.arg(id);

-- name: RunnerQueuedJobs :many
-- What waits for this runner, locked. Builds belong to no machine.
SELECT id, attempt, workflow_id, install_id FROM runner_jobs
WHERE runner_id = sqlc.arg(runner_id) AND state = 'queued' AND build_id IS NULL
ORDER BY id FOR UPDATE;

-- name: RunnerRequeueJob :exec
-- The attempt is provably over without effect: the job waits for the next one.
-- Its place in the queue is the old one. Of what was reported, only evidence of
-- late reports stays; result says which report ended the attempt, if one did.
UPDATE runner_jobs
SET state = 'queued', result = jsonb_strip_nulls(jsonb_build_object('late', result -> 'late')) || sqlc.arg(result)::jsonb
WHERE id = sqlc.arg(id);

-- name: RunnerKeepLate :execrows
-- A report that came too late changes nothing, and is kept: the first few.
UPDATE runner_jobs
SET result = jsonb_set(coalesce(result, '{}'), '{late}', coalesce(result -> 'late', '[]') || sqlc.arg(report)::jsonb)
WHERE id = sqlc.arg(id) AND jsonb_array_length(coalesce(result -> 'late', '[]')) < sqlc.arg(most)::int
  AND NOT coalesce(result -> 'late', '[]') @> jsonb_build_array(jsonb_build_object('digest', sqlc.arg(digest)::text));
