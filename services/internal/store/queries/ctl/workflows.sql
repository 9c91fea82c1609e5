-- Workflows, as ctl-api leads and shows them. All run inside store.Tx of the org.

-- name: LockWorkflow :one
-- The workflow's row, locked: its holder is the only one to move it. Who only
-- inserts what refers to it is not held up.
SELECT * FROM workflows WHERE id = sqlc.arg(id) FOR NO KEY UPDATE;

-- name: GetWorkflow :one
SELECT * FROM workflows WHERE id = sqlc.arg(id);

-- name: InsertWorkflow :one
-- Numbered per install; call with the install's row locked.
INSERT INTO workflows (id, org_id, install_id, number, kind, release_id, inputs_version, toggles_version, plan_only, approve_all, params, trace, created_by)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(install_id),
        (SELECT coalesce(max(w.number), 0) + 1 FROM workflows w WHERE w.install_id = sqlc.arg(install_id)),
        sqlc.arg(kind), sqlc.narg(release_id), sqlc.arg(inputs_version), sqlc.arg(toggles_version), sqlc.arg(plan_only), sqlc.arg(approve_all),
        sqlc.arg(params), sqlc.arg(trace), sqlc.arg(created_by))
RETURNING *;

-- name: SetWorkflowState :exec
-- The row's state and what it waits for (all three wait columns or none).
UPDATE workflows SET
    state = sqlc.arg(state),
    wait_reason = sqlc.narg(wait_reason), wait_on = sqlc.narg(wait_on), wait_deadline = sqlc.narg(wait_deadline),
    error = sqlc.narg(error),
    started_at = coalesce(started_at, now()),
    finished_at = CASE WHEN sqlc.arg(state)::text IN ('succeeded', 'failed', 'cancelled') THEN now() END
WHERE id = sqlc.arg(id);

-- name: RequestWorkflowCancel :exec
UPDATE workflows SET cancel_requested_at = coalesce(cancel_requested_at, now()) WHERE id = sqlc.arg(id);

-- name: ApproveAllOfWorkflow :exec
UPDATE workflows SET approve_all = true WHERE id = sqlc.arg(id);

-- name: ListWorkflows :many
-- A page, newest first, behind the id `after`; one by id.
SELECT sqlc.embed(w), i.name AS install_name, r.number AS release_number
FROM workflows w JOIN installs i ON i.id = w.install_id LEFT JOIN releases r ON r.id = w.release_id
WHERE (sqlc.narg(id)::text IS NULL OR w.id = sqlc.narg(id))
  AND (sqlc.narg(install_id)::text IS NULL OR w.install_id = sqlc.narg(install_id))
  AND (sqlc.narg(state)::text IS NULL OR w.state = sqlc.narg(state))
  AND (sqlc.narg(after)::text IS NULL OR w.id < sqlc.narg(after))
ORDER BY w.id DESC LIMIT sqlc.arg(most);

-- name: OpenWorkflowsOfInstall :many
SELECT id FROM workflows WHERE install_id = sqlc.arg(install_id) AND state IN ('queued', 'running', 'waiting') ORDER BY number;

-- name: InstallIsMadeOrRemoved :one
-- Whether a workflow that has begun provisions or removes an install.
SELECT EXISTS (SELECT 1 FROM workflows WHERE install_id = sqlc.arg(install_id) AND state IN ('running', 'waiting')
               AND kind IN ('provision', 'deprovision') AND NOT plan_only);

-- name: NextEventSeq :one
-- Hands out the next number of a workflow's events; the row is locked by it.
UPDATE workflows SET event_seq = event_seq + 1 WHERE id = sqlc.arg(id) RETURNING event_seq;

-- name: InsertWorkflowEvent :exec
INSERT INTO workflow_events (org_id, workflow_id, seq, kind, body)
VALUES (berth.current_org(), sqlc.arg(workflow_id), sqlc.arg(seq), sqlc.arg(kind), sqlc.arg(body));

-- name: WorkflowEventsAfter :many
SELECT seq, at, kind, body FROM workflow_events
WHERE workflow_id = sqlc.arg(workflow_id) AND seq > sqlc.arg(after_seq)
ORDER BY seq LIMIT sqlc.arg(most);

-- name: OpenWork :one
-- Ids of everything of a kind that is not finished, across orgs.
SELECT berth.open_work(sqlc.arg(kind)::text)::text[];
