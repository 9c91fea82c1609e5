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
    wait_reason = sqlc.narg(wait_reason), wait_on = sqlc.narg(wait_on), wait_deadline = sqlc.narg(wait_deadline),
    error = sqlc.narg(error), remedy = sqlc.narg(remedy),
    started_at = CASE WHEN sqlc.arg(state)::text IN ('pending', 'cancelled') THEN started_at ELSE coalesce(started_at, now()) END,
    finished_at = CASE WHEN sqlc.arg(state)::text IN ('succeeded', 'skipped', 'failed', 'cancelled') THEN now() END
WHERE id = sqlc.arg(id);

-- name: SetStepChange :exec
-- The change that the step is at now; counts an attempt.
UPDATE steps SET change_id = sqlc.arg(change_id), attempt = attempt + 1, state = 'running',
    wait_reason = NULL, wait_on = NULL, wait_deadline = NULL
WHERE id = sqlc.arg(id);

-- name: CountStepAttempt :exec
UPDATE steps SET attempt = attempt + 1 WHERE id = sqlc.arg(id);

-- name: RetryStep :exec
-- A failed step begins again. What failed, went stale or stayed uncertain
-- before now does not count any more.
UPDATE steps SET state = 'pending', error = NULL, remedy = NULL, finished_at = NULL, retried_at = clock_timestamp() WHERE id = sqlc.arg(id);

-- name: SetStepMayChange :exec
-- What a preview could not know of the step.
UPDATE steps SET may_change = sqlc.arg(may_change) WHERE id = sqlc.arg(id);

-- name: SkippedByDenial :one
-- Whether a workflow skipped what somebody denied.
SELECT EXISTS (
    SELECT 1 FROM steps s JOIN changes c ON c.id = s.change_id
    WHERE s.workflow_id = sqlc.arg(workflow_id) AND s.state = 'skipped' AND c.state = 'denied'
)::boolean;

-- name: SkipStep :exec
-- A step that is not wanted any more; its reason says why.
UPDATE steps SET state = 'skipped', reason = reason || '; skipped: ' || sqlc.arg(why)::text, finished_at = now(),
    wait_reason = NULL, wait_on = NULL, wait_deadline = NULL
WHERE id = sqlc.arg(id);
