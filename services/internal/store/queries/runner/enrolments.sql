-- Enrolment and phone-home, as runner-api sees them: single-use secrets.

-- name: RunnerEnrolmentBySecret :one
-- The enrolment that a secret opens, locked: of two keys that come at once, one
-- binds it.
SELECT id, runner_id, state, replaces, bound_key, expires_at, (expires_at <= now())::boolean AS expired
FROM enrolments WHERE secret_hash = sqlc.arg(secret_hash)
FOR UPDATE;

-- name: RunnerBindEnrolment :exec
UPDATE enrolments SET state = 'used', bound_key = sqlc.arg(bound_key)::text, used_at = now()
WHERE id = sqlc.arg(id);

-- name: RunnerWaitingBuilds :many
-- Builds without a job: their orders name the Build Runner's key, which is known
-- now.
SELECT id FROM builds WHERE state = 'queued' AND job_id IS NULL ORDER BY id;

-- name: RunnerAlarmEnrolment :execrows
-- Somebody else came with this secret. The first time is kept.
UPDATE enrolments SET alarmed_at = now() WHERE id = sqlc.arg(id) AND alarmed_at IS NULL;

-- name: RunnerStackBySecret :one
-- The stack version that a phone-home secret belongs to, locked.
SELECT id, install_id, version, state, phone_home_body_digest, (expires_at <= now())::boolean AS expired
FROM stack_versions WHERE phone_home_hash = sqlc.arg(phone_home_hash)
FOR UPDATE;

-- name: RunnerActivateStack :exec
-- The stack was applied; the versions before it are outdated.
UPDATE stack_versions
SET state = CASE WHEN id = sqlc.arg(id) THEN 'active' ELSE 'outdated' END,
    phone_home_body_digest = CASE WHEN id = sqlc.arg(id) THEN sqlc.arg(body_digest)::text ELSE phone_home_body_digest END,
    outputs = CASE WHEN id = sqlc.arg(id) THEN sqlc.arg(outputs)::jsonb ELSE outputs END,
    phoned_home_at = CASE WHEN id = sqlc.arg(id) THEN now() ELSE phoned_home_at END
WHERE install_id = sqlc.arg(install_id) AND (id = sqlc.arg(id) OR (state = 'active' AND version < sqlc.arg(version)::int));
