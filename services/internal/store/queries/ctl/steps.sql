-- The steps of workflows. All run inside store.Tx of the org.

-- name: InsertStep :exec
INSERT INTO steps (id, org_id, workflow_id, install_id, idx, name, kind, resource_id, action, needs, reason, params, max_retries)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(workflow_id), sqlc.arg(install_id), sqlc.arg(idx), sqlc.arg(name), sqlc.arg(kind),
        sqlc.narg(resource_id), sqlc.narg(action), sqlc.arg(needs), sqlc.arg(reason), sqlc.arg(params), sqlc.arg(max_retries));

-- name: StepsOfWorkflow :many
SELECT * FROM steps WHERE workflow_id = sqlc.arg(workflow_id) ORDER BY idx;

-- name: GetStep :one
SELECT * FROM steps WHERE id = sqlc.arg(id);

-- name: SetStepState :exec
-- The row's state, and what it waits for (all of reason, on and deadline, or none).
UPDATE steps SET
    state = sqlc.arg(state),
    wait_reason = sqlc.narg(wait_reason), wait_on = sqlc.narg(wait_on), wait_deadline = sqlc.narg(wait_deadline), wait_retry_at = sqlc.narg(wait_retry_at),
    error = sqlc.narg(error), remedy = sqlc.narg(remedy),
    started_at = CASE WHEN sqlc.arg(state)::text IN ('pending', 'cancelled') THEN started_at ELSE coalesce(started_at, now()) END,
    finished_at = CASE WHEN sqlc.arg(state)::text IN ('succeeded', 'skipped', 'failed', 'cancelled') THEN now() END
WHERE id = sqlc.arg(id);

-- name: SetStepChange :exec
-- The change that the step is at now; counts an attempt.
UPDATE steps SET change_id = sqlc.arg(change_id), attempt = attempt + 1, state = 'running',
    wait_reason = NULL, wait_on = NULL, wait_deadline = NULL, wait_retry_at = NULL
WHERE id = sqlc.arg(id);

-- name: SetStepRetryAt :exec
-- When the engine looks at a waiting step again by itself.
UPDATE steps SET wait_retry_at = sqlc.arg(retry_at)::timestamptz WHERE id = sqlc.arg(id);

-- name: CountStepAttempt :exec
UPDATE steps SET attempt = attempt + 1 WHERE id = sqlc.arg(id);

-- name: RetryStep :exec
-- A failed or cancelled step begins again. What failed, went stale or stayed uncertain
-- before now does not count any more.
UPDATE steps SET state = 'pending', error = NULL, remedy = NULL, finished_at = NULL, retried_at = clock_timestamp() WHERE id = sqlc.arg(id);

-- name: SetStepMayChange :exec
-- What a preview could not know of the step.
UPDATE steps SET may_change = sqlc.arg(may_change) WHERE id = sqlc.arg(id);

-- name: SkipStep :exec
-- A step that is not wanted any more; its reason says why.
UPDATE steps SET state = 'skipped', reason = reason || '; skipped: ' || sqlc.arg(why)::text, finished_at = now(),
    wait_reason = NULL, wait_on = NULL, wait_deadline = NULL
WHERE id = sqlc.arg(id);

-- name: SkipFailedStep :exec
-- A person has the workflow go on without a step; its error stays to be read.
UPDATE steps SET state = 'skipped', skipped_by = sqlc.arg(actor)::text, reason = reason || '; skipped by ' || sqlc.arg(actor)::text, finished_at = now(),
    wait_reason = NULL, wait_on = NULL, wait_deadline = NULL
WHERE id = sqlc.arg(id);

-- name: SkippedByPeople :one
-- Whether a person had a workflow go on without a deploy: one that failed, or that they denied.
SELECT EXISTS (
    SELECT 1 FROM steps s LEFT JOIN changes c ON c.id = s.change_id
    WHERE s.workflow_id = sqlc.arg(workflow_id) AND s.kind = 'deploy' AND (s.skipped_by IS NOT NULL OR s.state = 'skipped' AND c.state = 'denied')
);
