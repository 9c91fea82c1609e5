-- Terraform states (ciphertext) and their locks.

-- name: RunnerCurrentState :one
SELECT id, serial, lineage, digest, body, job_id, attempt, fence
FROM tf_states WHERE resource_id = sqlc.arg(resource_id) AND kind = 'current';

-- name: RunnerStateHead :one
-- The current state without its bytes, to compare a write with.
SELECT id, serial, lineage, digest, fence
FROM tf_states WHERE resource_id = sqlc.arg(resource_id) AND kind = 'current'
FOR UPDATE;

-- name: RunnerSupersedeState :exec
UPDATE tf_states SET kind = 'superseded' WHERE id = sqlc.arg(id) AND kind = 'current';

-- name: RunnerKeepState :exec
-- A state that was accepted (kind current), or evidence of one that was not
-- (kind orphaned, with the reason).
INSERT INTO tf_states (id, org_id, resource_id, serial, lineage, kind, body, digest, summary, job_id, attempt, fence, reason)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(resource_id), sqlc.arg(serial), sqlc.arg(lineage), sqlc.arg(kind), sqlc.arg(body),
        sqlc.arg(digest), sqlc.arg(summary), sqlc.arg(job_id), sqlc.arg(attempt), sqlc.arg(fence), sqlc.arg(reason));

-- name: RunnerOrphanedState :one
-- The evidence that the same write has left before.
SELECT id FROM tf_states
WHERE resource_id = sqlc.arg(resource_id) AND kind = 'orphaned' AND job_id = sqlc.arg(job_id) AND attempt = sqlc.arg(attempt)
  AND serial = sqlc.arg(serial) AND digest = sqlc.arg(digest)
LIMIT 1;

-- name: RunnerDropOrphanedBodies :exec
-- Of the orphaned states of a resource the newest stay whole; of the older ones
-- everything but the bytes.
UPDATE tf_states SET body = NULL
WHERE id IN (SELECT o.id FROM tf_states o
             WHERE o.resource_id = sqlc.arg(resource_id) AND o.kind = 'orphaned'
             ORDER BY o.created_at DESC, o.id DESC OFFSET sqlc.arg(whole)::int)
  AND body IS NOT NULL;

-- name: RunnerStateLock :one
-- Who holds the state of a resource, locked.
SELECT lock_id, info, job_id, attempt, fence, locked_at
FROM tf_locks WHERE resource_id = sqlc.arg(resource_id)
FOR UPDATE;

-- name: RunnerHeldLock :one
-- Who holds the state of a resource of an install, and what became of its job.
SELECT l.lock_id, l.info, l.job_id, l.attempt, l.fence, l.locked_at, j.state AS job_state
FROM tf_locks l JOIN runner_jobs j ON j.org_id = l.org_id AND j.id = l.job_id
WHERE l.resource_id = sqlc.arg(resource_id) AND j.install_id = sqlc.arg(install_id)::text;

-- name: RunnerTakeStateLock :one
-- Takes the lock, also from a holder that the caller has found to be outdated.
-- No row: somebody else was faster.
INSERT INTO tf_locks (org_id, resource_id, lock_id, info, job_id, attempt, fence)
VALUES (berth.current_org(), sqlc.arg(resource_id), sqlc.arg(lock_id), sqlc.arg(info), sqlc.arg(job_id), sqlc.arg(attempt), sqlc.arg(fence))
ON CONFLICT (org_id, resource_id) DO UPDATE
SET lock_id = excluded.lock_id, info = excluded.info, job_id = excluded.job_id, attempt = excluded.attempt,
    fence = excluded.fence, locked_at = now()
WHERE tf_locks.lock_id = sqlc.arg(old_lock_id) AND tf_locks.job_id = sqlc.arg(old_job_id)
RETURNING lock_id, info, job_id, attempt, fence, locked_at;

-- name: RunnerFreeStateLock :exec
DELETE FROM tf_locks
WHERE resource_id = sqlc.arg(resource_id) AND lock_id = sqlc.arg(lock_id) AND job_id = sqlc.arg(job_id) AND attempt = sqlc.arg(attempt);
