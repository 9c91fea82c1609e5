-- Workflows, as ctl-api leads and shows them. All run inside store.Tx of the org.

-- name: LockWorkflow :one
-- The workflow's row, locked: its holder is the only one to move it. Who only
-- inserts what refers to it is not held up.
SELECT * FROM workflows WHERE id = sqlc.arg(id) FOR NO KEY UPDATE;

-- name: GetWorkflow :one
SELECT * FROM workflows WHERE id = sqlc.arg(id);

-- name: InsertWorkflow :one
-- Numbered per install; call with the install's row locked.
INSERT INTO workflows (id, org_id, install_id, number, kind, release_id, inputs_version, toggles_version, plan_only, approve_all, on_failure, params, trace, created_by)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(install_id),
        (SELECT coalesce(max(w.number), 0) + 1 FROM workflows w WHERE w.install_id = sqlc.arg(install_id)),
        sqlc.arg(kind), sqlc.narg(release_id), sqlc.arg(inputs_version), sqlc.arg(toggles_version), sqlc.arg(plan_only), sqlc.arg(approve_all), sqlc.arg(on_failure),
        sqlc.arg(params), sqlc.arg(trace), sqlc.arg(created_by))
RETURNING *;

-- name: SetWorkflowState :exec
-- The row's state and what it waits for (all three wait columns or none); of a
-- failed one how it ended, when it did not fail.
UPDATE workflows SET
    state = sqlc.arg(state),
    wait_reason = sqlc.narg(wait_reason), wait_on = sqlc.narg(wait_on), wait_deadline = sqlc.narg(wait_deadline),
    error = sqlc.narg(error), ended = sqlc.narg(ended), ended_by = sqlc.narg(ended_by),
    started_at = coalesce(started_at, now()),
    finished_at = CASE WHEN sqlc.arg(state)::text IN ('succeeded', 'failed', 'cancelled') THEN now() END
WHERE id = sqlc.arg(id);

-- name: RequestWorkflowAgain :exec
-- A person asked for it again; what others asked for since gives way to it. That it
-- was cancelled before is over.
UPDATE workflows SET requested_at = clock_timestamp(), cancel_requested_at = NULL WHERE id = sqlc.arg(id);

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

-- name: OpenWorkflowsOfInstalls :many
-- Of each install the newest workflow that is not finished; one that only shows
-- plans comes last.
SELECT DISTINCT ON (w.install_id) sqlc.embed(w), i.name AS install_name, r.number AS release_number
FROM workflows w JOIN installs i ON i.id = w.install_id LEFT JOIN releases r ON r.id = w.release_id
WHERE w.install_id = ANY (sqlc.arg(install_ids)::text[]) AND w.state IN ('queued', 'running', 'waiting')
ORDER BY w.install_id, w.plan_only, w.number DESC;

-- name: LastWorkflowsOfInstalls :many
-- Of each install the workflow that was the last to end and was to change the
-- install, with its first failed step.
SELECT DISTINCT ON (w.install_id) sqlc.embed(w), r.number AS release_number,
       coalesce(f.name, '')::text AS failed_step, coalesce(f.error, '')::text AS step_error, coalesce(f.superseded, false)::boolean AS superseded
FROM workflows w LEFT JOIN releases r ON r.id = w.release_id
LEFT JOIN LATERAL (
    SELECT s.name, s.error, coalesce(c.state = 'superseded', false) AS superseded
    FROM steps s LEFT JOIN changes c ON c.id = s.change_id
    WHERE s.workflow_id = w.id AND s.state = 'failed' ORDER BY superseded, s.idx LIMIT 1
) f ON true
WHERE w.install_id = ANY (sqlc.arg(install_ids)::text[]) AND w.state IN ('succeeded', 'failed', 'cancelled')
  AND w.kind NOT IN ('action_run', 'run_script', 'role_switch') AND NOT w.plan_only
ORDER BY w.install_id, w.finished_at DESC, w.number DESC;

-- name: InstallIsMadeOrRemoved :one
-- Whether a workflow that has begun provisions or removes an install.
SELECT EXISTS (SELECT 1 FROM workflows WHERE install_id = sqlc.arg(install_id) AND state IN ('running', 'waiting')
               AND kind IN ('provision', 'deprovision', 'deprovision_sandbox') AND NOT plan_only);

-- name: StepsOfOtherWorkflows :many
-- The other workflows of an install that are not finished and change something,
-- with each of their steps on a resource; both tells that this workflow has a step
-- on the resource, too. A script only holds its resource: it replaces no change of it.
SELECT sqlc.embed(w), coalesce(r.name, '')::text AS resource, coalesce(s.state, '')::text AS step_state, coalesce(c.state, '')::text AS change_state,
       EXISTS (SELECT 1 FROM steps m WHERE m.workflow_id = sqlc.arg(workflow_id) AND m.kind <> 'script' AND m.resource_id = s.resource_id) AS both
FROM workflows w
LEFT JOIN steps s ON s.workflow_id = w.id AND s.resource_id IS NOT NULL AND s.kind <> 'script'
LEFT JOIN resources r ON r.id = s.resource_id
LEFT JOIN changes c ON c.id = s.change_id
WHERE w.install_id = sqlc.arg(install_id) AND w.id <> sqlc.arg(workflow_id) AND w.state IN ('queued', 'running', 'waiting') AND NOT w.plan_only
ORDER BY w.number, s.idx;

-- name: AppendWorkflowEvents :execrows
-- Stores events under the workflow's next numbers, in their order; the workflow's row is
-- locked by it. No row when there is no such workflow.
WITH numbered AS (
    UPDATE workflows SET event_seq = event_seq + cardinality(sqlc.arg(kinds)::text[]) WHERE id = sqlc.arg(workflow_id) RETURNING id, event_seq
)
INSERT INTO workflow_events (org_id, workflow_id, seq, kind, body)
SELECT berth.current_org(), n.id, n.event_seq - cardinality(sqlc.arg(kinds)::text[]) + e.i, (sqlc.arg(kinds)::text[])[e.i], ((sqlc.arg(bodies)::text[])[e.i])::jsonb
FROM numbered n, generate_subscripts(sqlc.arg(kinds)::text[], 1) AS e(i) ORDER BY e.i;

-- name: WorkflowEventsAfter :many
SELECT seq, at, kind, body FROM workflow_events
WHERE workflow_id = sqlc.arg(workflow_id) AND seq > sqlc.arg(after_seq)
ORDER BY seq LIMIT sqlc.arg(most);

-- name: OpenWork :one
-- Ids of everything of a kind that is not finished, across orgs.
SELECT berth.open_work(sqlc.arg(kind)::text)::text[];
