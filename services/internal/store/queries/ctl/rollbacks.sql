-- What a rollback goes back to. All run inside store.Tx of the org.

-- name: PastOfInstall :many
-- The ended workflows that brought, or tried to bring, an install to a release,
-- newest first. Those that were given up before anything was applied do not count.
-- Part tells that the workflow was about named components only; Good that it came out,
-- with nothing skipped by a person.
SELECT w.id AS workflow_id, w.kind, w.state, w.release_id::text AS release_id, r.number AS release_number, w.inputs_version,
       (coalesce(jsonb_array_length(w.params->'components'), 0) > 0)::boolean AS part,
       (w.state = 'succeeded' AND NOT EXISTS (SELECT 1 FROM steps s WHERE s.workflow_id = w.id AND s.kind = 'deploy' AND s.skipped_by IS NOT NULL))::boolean AS good
FROM workflows w JOIN releases r ON r.org_id = w.org_id AND r.id = w.release_id
WHERE w.install_id = sqlc.arg(install_id) AND NOT w.plan_only AND w.state IN ('succeeded', 'failed', 'cancelled')
  AND w.kind IN ('provision', 'reprovision', 'reprovision_sandbox', 'deploy', 'input_update', 'rollback')
  AND (w.state = 'succeeded' OR EXISTS (SELECT 1 FROM changes c WHERE c.workflow_id = w.id AND c.resource_id IS NOT NULL AND c.executed_at IS NOT NULL))
ORDER BY w.finished_at DESC, w.number DESC LIMIT 200;

-- name: PastOfResource :many
-- The deploys of a resource that ended, newest first: what landed, and what was
-- applied and did not come out. held: its gate failed, so what landed was not healthy.
SELECT c.workflow_id, w.kind, c.state,
       EXISTS (SELECT 1 FROM steps g WHERE g.workflow_id = c.workflow_id AND g.kind = 'gate' AND g.state = 'failed' AND g.params->'gate'->'holds' ? n.name) AS held,
       c.release_id::text AS release_id, r.number AS release_number, c.inputs_version
FROM changes c JOIN workflows w ON w.org_id = c.org_id AND w.id = c.workflow_id JOIN releases r ON r.org_id = c.org_id AND r.id = c.release_id
JOIN resources n ON n.id = c.resource_id
WHERE c.resource_id = sqlc.arg(resource_id) AND c.kind = 'deploy' AND NOT w.plan_only
  AND (c.state IN ('applied', 'no_change') OR c.executed_at IS NOT NULL AND c.finished_at IS NOT NULL)
ORDER BY c.finished_at DESC, c.id DESC LIMIT 200;

-- name: MovedByWorkflow :many
-- The resources that a workflow applied something to, by name.
SELECT r.kind, r.name FROM resources r
WHERE r.install_id = sqlc.arg(install_id)
  AND EXISTS (SELECT 1 FROM changes c WHERE c.workflow_id = sqlc.arg(workflow_id) AND c.resource_id = r.id AND c.kind = 'deploy' AND c.executed_at IS NOT NULL)
ORDER BY r.kind DESC, r.name;

-- name: RollbackAnswers :one
-- Whether a rollback was started by itself because a workflow failed.
SELECT EXISTS (SELECT 1 FROM workflows WHERE install_id = sqlc.arg(install_id) AND kind = 'rollback'
               AND params->'rollback'->>'answers' = sqlc.arg(workflow_id)::text AND (params->'rollback'->>'by_itself')::boolean);

-- name: InstallStandsOn :one
-- Whether the sandbox or a component of an install is live with a release.
SELECT EXISTS (SELECT 1 FROM resources WHERE install_id = sqlc.arg(install_id) AND live_release_id = sqlc.arg(release_id)::text);

-- name: BringInputsBack :exec
-- The inputs of a rollback that succeeded are those in force, unless somebody has
-- set others since it began.
UPDATE installs SET inputs_version = sqlc.arg(version) WHERE id = sqlc.arg(install_id) AND inputs_version < sqlc.arg(version);
