-- Who waits for what, for `why`. All run inside store.Tx of the org.

-- name: JobToExplain :one
-- One job with its runner. A job of a build has no install and no workflow.
SELECT sqlc.embed(r), j.id, j.step_id, j.workflow_id, j.operation, j.mutates, j.state, j.attempt, j.queued_at, j.leased_at, j.timeout_seconds
FROM runner_jobs j JOIN runners r ON r.id = j.runner_id WHERE j.id = sqlc.arg(id);
