-- Changes and decisions. All run inside store.Tx of the org.

-- name: InsertChange :exec
-- A change that is being prepared. What a person approved of the change that it
-- replaces is carried over; it counts only while the effect is the same. Plans
-- made again and retries keep the origin of the first.
INSERT INTO changes (id, org_id, install_id, workflow_id, step_id, resource_id, kind, release_id, revision_id,
                     artifact_repository, artifact_digest, inputs_version, state_version, plan_job_id, approved_effect_digest, replaces, origin_id)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(install_id), sqlc.arg(workflow_id), sqlc.arg(step_id), sqlc.narg(resource_id), sqlc.arg(kind),
        sqlc.narg(release_id), sqlc.narg(revision_id), sqlc.narg(artifact_repository), sqlc.narg(artifact_digest),
        sqlc.arg(inputs_version), sqlc.arg(state_version), sqlc.arg(plan_job_id), sqlc.narg(approved_effect_digest), sqlc.narg(replaces), sqlc.arg(origin_id));

-- name: GetChange :one
SELECT * FROM changes WHERE id = sqlc.arg(id);

-- name: CapsuleOfChange :one
-- The job that was granted to carry a change out, with its signed order.
SELECT id, signed_order FROM runner_jobs WHERE change_id = sqlc.arg(change_id)::text AND mutates AND signed_order IS NOT NULL ORDER BY id DESC LIMIT 1;

-- name: LockChange :one
SELECT * FROM changes WHERE id = sqlc.arg(id) FOR UPDATE;

-- name: CurrentChanges :many
-- The change that each step of a workflow is at.
SELECT c.* FROM changes c JOIN steps s ON s.change_id = c.id WHERE s.workflow_id = sqlc.arg(workflow_id);

-- name: ProposeChange :exec
UPDATE changes SET state = 'proposed', effect = sqlc.arg(effect), effect_digest = sqlc.arg(effect_digest),
    plan_bytes_digest = sqlc.narg(plan_bytes_digest), pinned = sqlc.narg(pinned), plan = sqlc.arg(plan),
    differs = sqlc.arg(differs), wait_reason = 'decision', wait_on = 'approver', wait_deadline = sqlc.arg(deadline), proposed_at = now()
WHERE id = sqlc.arg(id);

-- name: EndPlannedChange :exec
-- A plan that is not going to be done: empty (no_change), only shown (planned),
-- given up (withdrawn), or denied by policies.
UPDATE changes SET state = sqlc.arg(state), effect = sqlc.narg(effect), effect_digest = sqlc.narg(effect_digest),
    plan = sqlc.narg(plan), error = sqlc.narg(error), remedy = sqlc.narg(remedy), denied_by = sqlc.narg(denied_by), finished_at = now(),
    wait_reason = NULL, wait_on = NULL, wait_deadline = NULL
WHERE id = sqlc.arg(id);

-- name: ApproveChange :exec
UPDATE changes SET state = 'approved', approved_effect_digest = effect_digest, decided_at = now(),
    wait_reason = NULL, wait_on = NULL, wait_deadline = NULL
WHERE id = sqlc.arg(id) AND state = 'proposed';

-- name: DenyChange :exec
-- By somebody, or by time; by the customer also what was approved.
UPDATE changes SET state = 'denied', error = sqlc.arg(error), remedy = sqlc.narg(remedy), denied_by = sqlc.narg(denied_by), denied_then = sqlc.narg(denied_then), decided_at = now(), finished_at = now(),
    wait_reason = NULL, wait_on = NULL, wait_deadline = NULL
WHERE id = sqlc.arg(id) AND state IN ('proposed', 'approved');

-- name: PlanChangeAgain :exec
-- Somebody wants to see what it would do now.
UPDATE changes SET state = 'withdrawn', error = sqlc.arg(error), decided_at = now(), finished_at = now(),
    wait_reason = NULL, wait_on = NULL, wait_deadline = NULL
WHERE id = sqlc.arg(id) AND state = 'proposed';

-- name: ExecuteChange :exec
UPDATE changes SET state = 'executing', fence = sqlc.narg(fence), apply_job_id = sqlc.arg(apply_job_id), executed_at = now()
WHERE id = sqlc.arg(id);

-- name: SettleChange :exec
UPDATE changes SET state = sqlc.arg(state), result = sqlc.narg(result), error = sqlc.narg(error), remedy = sqlc.narg(remedy),
    differs = coalesce(sqlc.narg(differs), differs), finished_at = now(),
    wait_reason = NULL, wait_on = NULL, wait_deadline = NULL
WHERE id = sqlc.arg(id);

-- name: RivalsOfChange :many
-- Changes of other workflows to what a change is about: a resource or, without one,
-- what the install accepts. Those that wait for a decision, and those that a newer
-- request has brought further.
SELECT c.id, c.state, w.id AS workflow_id, w.kind AS workflow_kind, w.created_by, w.requested_at
FROM changes c JOIN workflows w ON w.id = c.workflow_id
WHERE c.install_id = sqlc.arg(install_id) AND c.workflow_id <> sqlc.arg(workflow_id) AND NOT w.plan_only
  AND (c.resource_id = sqlc.narg(resource_id) OR (sqlc.narg(resource_id)::text IS NULL AND c.kind = 'accept'))
  AND (c.state = 'proposed' OR (w.requested_at > sqlc.arg(requested_at) AND c.state IN ('approved', 'executing', 'applied', 'no_change')))
ORDER BY w.requested_at, c.id;

-- name: SupersedeChange :execrows
-- A change whose plan is there gives way to a newer request.
UPDATE changes SET state = 'superseded', error = sqlc.arg(error)::text, finished_at = now(),
    wait_reason = NULL, wait_on = NULL, wait_deadline = NULL
WHERE id = sqlc.arg(id) AND state IN ('preparing', 'proposed');

-- name: HasAccepted :one
-- Whether an install has ever accepted a release: its runner runs no script
-- before that.
SELECT EXISTS (SELECT 1 FROM changes WHERE install_id = sqlc.arg(install_id) AND kind = 'accept' AND state IN ('applied', 'no_change'));

-- name: InsertDecision :exec
-- Who approves with the same token again has approved already.
INSERT INTO decisions (id, org_id, change_id, answer, effect_digest, actor, rule, note, account_id, token_id)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(change_id), sqlc.arg(answer), sqlc.arg(effect_digest), sqlc.arg(actor), sqlc.arg(rule), sqlc.arg(note), sqlc.narg(account_id), sqlc.narg(token_id))
ON CONFLICT DO NOTHING;

-- name: DecisionsOfChange :many
SELECT * FROM decisions WHERE change_id = sqlc.arg(change_id) ORDER BY created_at, id;

-- name: ListChanges :many
-- A page, newest first, behind the id `after`; one by id.
SELECT sqlc.embed(c), i.name AS install_name, l.number AS release_number, coalesce(r.name, '')::text AS resource_name, coalesce(r.kind, '')::text AS resource_kind
FROM changes c JOIN installs i ON i.id = c.install_id LEFT JOIN resources r ON r.id = c.resource_id LEFT JOIN releases l ON l.id = c.release_id
WHERE (sqlc.narg(id)::text IS NULL OR c.id = sqlc.narg(id))
  AND (sqlc.narg(install_id)::text IS NULL OR c.install_id = sqlc.narg(install_id))
  AND (sqlc.narg(workflow_id)::text IS NULL OR c.workflow_id = sqlc.narg(workflow_id))
  AND (sqlc.narg(resource_id)::text IS NULL OR c.resource_id = sqlc.narg(resource_id))
  AND (sqlc.narg(state)::text IS NULL OR c.state = sqlc.narg(state))
  AND (sqlc.narg(after)::text IS NULL OR c.id < sqlc.narg(after))
ORDER BY c.id DESC LIMIT sqlc.arg(most);
