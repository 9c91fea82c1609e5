-- Policies of approval, freezes and the vendor's pause. All run inside store.Tx of
-- the org.

-- name: PoliciesOf :many
-- Those of an install and of its app.
SELECT * FROM approval_policies WHERE about IN (sqlc.arg(install_id), sqlc.arg(app_id));

-- name: PutPolicy :one
INSERT INTO approval_policies (about, org_id, app_id, install_id, approvals, roles, no_self_approval, hours, updated_by)
VALUES (coalesce(sqlc.narg(app_id), sqlc.narg(install_id))::text, berth.current_org(), sqlc.narg(app_id), sqlc.narg(install_id), sqlc.arg(approvals), sqlc.arg(roles), sqlc.arg(no_self_approval), sqlc.narg(hours), sqlc.arg(updated_by))
ON CONFLICT (org_id, about) DO UPDATE SET approvals = excluded.approvals, roles = excluded.roles, no_self_approval = excluded.no_self_approval,
    hours = excluded.hours, updated_by = excluded.updated_by, updated_at = now()
RETURNING *;

-- name: PoliciesOfInstallsOfApp :many
-- Those of the installs of an app, with their names.
SELECT sqlc.embed(p), i.name FROM approval_policies p JOIN installs i ON i.id = p.install_id
WHERE i.app_id = sqlc.arg(app_id) AND i.forgotten_at IS NULL ORDER BY i.name;

-- name: VotesOfWorkflow :many
-- Who approved what the steps of a workflow propose or wait to carry out, with what
-- each may do there now. Plans that were made again share the votes for one effect,
-- up to a denial. A row of before has only the name of who answered.
SELECT c.id AS change_id, d.rule, d.actor, coalesce(a.id, '')::text AS account_id, coalesce(a.kind, '')::text AS account_kind,
       (a.id IS NULL OR a.disabled_at IS NOT NULL)::boolean AS removed, (t.revoked_at IS NOT NULL)::boolean AS token_revoked,
       array(SELECT DISTINCT g.role FROM grants g
             WHERE g.account_id = a.id AND (num_nonnulls(g.customer_id, g.app_id, g.install_id) = 0
                   OR g.customer_id = i.customer_id OR g.app_id = i.app_id OR g.install_id = i.id) ORDER BY g.role)::text[] AS roles
FROM changes c
JOIN installs i ON i.id = c.install_id
JOIN changes x ON coalesce(x.origin_id, x.id) = coalesce(c.origin_id, c.id)
JOIN decisions d ON d.change_id = x.id AND d.answer = 'approve' AND d.rule IN ('person', 'approve_all') AND d.effect_digest = c.effect_digest
LEFT JOIN accounts a ON a.id = d.account_id OR (d.account_id IS NULL AND a.name = d.actor)
LEFT JOIN tokens t ON t.id = d.token_id
WHERE c.workflow_id = sqlc.arg(workflow_id) AND c.state IN ('proposed', 'approved')
  AND NOT EXISTS (SELECT FROM changes y WHERE coalesce(y.origin_id, y.id) = coalesce(c.origin_id, c.id) AND y.state = 'denied' AND y.finished_at > d.created_at)
ORDER BY c.id, d.created_at, d.id;

-- name: ReopenChange :exec
-- Who approved it may not any more: it waits for a decision again.
UPDATE changes SET state = 'proposed', approved_effect_digest = NULL, decided_at = NULL, error = sqlc.arg(error)::text,
    wait_reason = 'decision', wait_on = 'approver', wait_deadline = sqlc.arg(deadline)
WHERE id = sqlc.arg(id) AND state = 'approved';

-- name: InsertFreeze :one
INSERT INTO freezes (id, org_id, app_id, install_id, reason, starts_at, ends_at, weekly, created_by)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.narg(app_id), sqlc.narg(install_id), sqlc.arg(reason), sqlc.narg(starts_at), sqlc.narg(ends_at), sqlc.narg(weekly), sqlc.arg(created_by))
RETURNING *;

-- name: FreezesOf :many
-- The freezes of an install and of its app that may still begin or go on at a time;
-- with an empty install_id those of the app alone.
SELECT * FROM freezes
WHERE removed_at IS NULL AND (install_id = sqlc.arg(install_id) OR app_id = sqlc.arg(app_id)) AND (ends_at IS NULL OR ends_at > sqlc.arg(after)::timestamptz)
ORDER BY id;

-- name: GetFreeze :one
SELECT * FROM freezes WHERE id = sqlc.arg(id) AND removed_at IS NULL;

-- name: RemoveFreeze :exec
UPDATE freezes SET removed_at = now(), removed_by = sqlc.arg(removed_by)::text WHERE id = sqlc.arg(id) AND removed_at IS NULL;

-- name: OverridesOfWorkflow :many
SELECT * FROM freeze_overrides WHERE workflow_id = sqlc.arg(workflow_id) ORDER BY created_at;

-- name: PutOverride :exec
INSERT INTO freeze_overrides (org_id, workflow_id, freeze_id, install_id, until, reason, actor)
VALUES (berth.current_org(), sqlc.arg(workflow_id), sqlc.arg(freeze_id), sqlc.arg(install_id), sqlc.arg(until), sqlc.arg(reason), sqlc.arg(actor))
ON CONFLICT (org_id, workflow_id, freeze_id) DO UPDATE SET until = excluded.until, reason = excluded.reason, actor = excluded.actor, created_at = now();

-- name: LockInstallsOfApp :many
-- Excludes every grant in them, in an order that is the same for all.
SELECT id FROM installs WHERE app_id = sqlc.arg(app_id) AND forgotten_at IS NULL ORDER BY id FOR NO KEY UPDATE;

-- name: WakeWorkflowsOfInstalls :exec
-- What holds their changes has moved.
SELECT berth.wake_workflow(w.id) FROM workflows w
WHERE w.install_id = ANY (sqlc.arg(install_ids)::text[]) AND w.state IN ('queued', 'running', 'waiting');

-- name: PauseInstall :exec
UPDATE installs SET paused_at = now(), paused_by = sqlc.arg(actor)::text, pause_reason = sqlc.arg(reason)::text, resumed_by = NULL WHERE id = sqlc.arg(id);

-- name: ResumeInstall :exec
UPDATE installs SET paused_at = NULL, paused_by = NULL, pause_reason = NULL, resumed_by = sqlc.arg(actor)::text WHERE id = sqlc.arg(id);
