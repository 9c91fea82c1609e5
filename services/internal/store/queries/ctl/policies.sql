-- What rules say of plans; all inside store.Tx of the org.

-- name: InsertPolicyReport :exec
-- What one policy says of a plan, once.
INSERT INTO policy_reports (org_id, install_id, change_id, side, policy, engine, answer, severity, passed, failed, warned, errored, skipped, unknown, findings, findings_left)
VALUES (berth.current_org(), sqlc.arg(install_id), sqlc.arg(change_id), sqlc.arg(side), sqlc.arg(policy), sqlc.arg(engine), sqlc.arg(answer), sqlc.arg(severity),
    sqlc.arg(passed), sqlc.arg(failed), sqlc.arg(warned), sqlc.arg(errored), sqlc.arg(skipped), sqlc.arg(unknown), sqlc.arg(findings), sqlc.arg(findings_left))
ON CONFLICT (org_id, change_id, side, policy) DO NOTHING;

-- name: ListPolicyReports :many
-- Those of the newest changes first, behind the one of (after_change, after_side, after_policy).
SELECT sqlc.embed(p), i.name AS install, a.name AS app, c.state AS change_state, c.workflow_id, coalesce(s.name, '')::text AS step,
       o.actor AS overridden_by, o.reason AS override_reason, o.until AS overridden_until, o.created_at AS overridden_at
FROM policy_reports p
JOIN changes c ON c.id = p.change_id
JOIN installs i ON i.id = p.install_id
JOIN apps a ON a.id = i.app_id
LEFT JOIN steps s ON s.id = c.step_id
LEFT JOIN policy_overrides o ON o.change_id = p.change_id AND p.side = 'vendor'
WHERE (sqlc.narg(install_id)::text IS NULL OR p.install_id = sqlc.narg(install_id))
  AND (sqlc.narg(app_id)::text IS NULL OR i.app_id = sqlc.narg(app_id))
  AND (sqlc.narg(change_id)::text IS NULL OR p.change_id = sqlc.narg(change_id))
  AND (sqlc.narg(side)::text IS NULL OR p.side = sqlc.narg(side))
  AND (sqlc.narg(policy)::text IS NULL OR p.policy = sqlc.narg(policy))
  AND (sqlc.narg(answer)::text IS NULL OR p.answer = sqlc.narg(answer))
  AND (sqlc.narg(after_change)::text IS NULL OR p.change_id < sqlc.narg(after_change)
       OR p.change_id = sqlc.narg(after_change) AND (p.side, p.policy) > (sqlc.narg(after_side)::text, sqlc.narg(after_policy)::text))
ORDER BY p.change_id DESC, p.side, p.policy
LIMIT sqlc.arg(most);

-- name: InsertPolicyOverride :execrows
-- Once for a change.
INSERT INTO policy_overrides (org_id, install_id, change_id, effect_digest, reason, actor, account_id, until)
VALUES (berth.current_org(), sqlc.arg(install_id), sqlc.arg(change_id), sqlc.arg(effect_digest), sqlc.arg(reason), sqlc.arg(actor), sqlc.narg(account_id), sqlc.arg(until))
ON CONFLICT (org_id, change_id) DO NOTHING;

-- name: OverridesOfEffect :many
-- What lets an effect pass in an install, also after its time.
SELECT * FROM policy_overrides WHERE install_id = sqlc.arg(install_id) AND effect_digest = sqlc.arg(effect_digest) ORDER BY created_at DESC;

-- name: ConsentOfChange :many
-- The customer's word on a change; none when the runner asks for none.
SELECT * FROM consents WHERE change_id = sqlc.arg(change_id);
