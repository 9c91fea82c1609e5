-- Inputs of installs, and what they override of single components; each change
-- is a new version.

-- name: AddInputs :one
INSERT INTO install_inputs (org_id, install_id, version, values, sealed, overrides, changed, created_by)
VALUES (berth.current_org(), sqlc.arg(install_id), sqlc.arg(version), sqlc.arg(plain), sqlc.narg(sealed), sqlc.arg(overrides), sqlc.narg(changed)::text[], sqlc.arg(created_by))
RETURNING *;

-- name: GetInputs :one
SELECT * FROM install_inputs WHERE install_id = sqlc.arg(install_id) AND version = sqlc.arg(version);

-- name: InputsChangedSince :many
-- The names of the inputs that each version behind one, up to another, changed; NULL in
-- one that an older release wrote.
SELECT version, changed FROM install_inputs
WHERE install_id = sqlc.arg(install_id) AND version > sqlc.arg(after) AND version <= sqlc.arg(up_to) ORDER BY version;

-- name: InputsInForce :many
-- The inputs that are in force in these installs; none for one that sets none.
SELECT n.* FROM installs i JOIN install_inputs n ON n.org_id = i.org_id AND n.install_id = i.id AND n.version = i.inputs_version
WHERE i.id = ANY (sqlc.arg(install_ids)::text[]);

-- name: SetInputsVersion :exec
UPDATE installs SET inputs_version = sqlc.arg(version) WHERE id = sqlc.arg(install_id);

-- name: NextInputs :one
-- The next version for inputs. It is behind those of a rollback that has not ended,
-- or never came to its end. Call with the install's row locked.
SELECT (greatest(coalesce(max(version), 0), 0) + 1)::int FROM install_inputs WHERE install_id = sqlc.arg(install_id);

-- name: NextPreviewInputs :one
-- The version for inputs that only a preview uses: these count down from -1. Call
-- with the install's row locked.
SELECT (least(coalesce(min(version), 0), 0) - 1)::int FROM install_inputs WHERE install_id = sqlc.arg(install_id);

-- name: InputsTaken :many
-- The newest inputs that workflows have taken to deploy these installs: to every
-- component (component is empty), and to single ones; a workflow that failed, or
-- in which a person skipped a deploy, has not. An input update takes them for all, since it deploys whatever refers to one,
-- and no toggles. A rollback of single components takes none: the inputs in force stay
-- what the rest stands on.
SELECT t.install_id::text AS install_id, t.component::text AS component, t.version::int AS version, t.toggles_version::int AS toggles_version,
       n.values, n.sealed, n.overrides
FROM (
    SELECT w.org_id, w.install_id, coalesce(c.name, '') AS component, max(w.inputs_version) AS version, coalesce(max(w.toggles_version) FILTER (WHERE w.kind <> 'input_update'), 0) AS toggles_version
    FROM workflows w LEFT JOIN LATERAL jsonb_array_elements_text(w.params->'components') AS c(name) ON true
    WHERE w.install_id = ANY (sqlc.arg(install_ids)::text[]) AND w.kind IN ('provision', 'deploy', 'reprovision', 'input_update', 'rollback') AND NOT w.plan_only
      AND NOT (w.kind = 'rollback' AND coalesce(jsonb_array_length(w.params->'components'), 0) > 0)
      AND w.state IN ('queued', 'running', 'waiting', 'succeeded')
      AND NOT EXISTS (SELECT 1 FROM steps s WHERE s.workflow_id = w.id AND s.kind = 'deploy' AND s.skipped_by IS NOT NULL)
    GROUP BY w.org_id, w.install_id, c.name
) t
JOIN install_inputs n ON n.org_id = t.org_id AND n.install_id = t.install_id AND n.version = t.version;

-- name: TogglesTaken :many
-- The installs whose toggles as they are now have been taken by workflows of kind toggle: one
-- has begun since they were set, and each component that is switched by name is there or
-- absent as it says, or such a workflow is at it.
SELECT i.id FROM installs i
WHERE i.id = ANY (sqlc.arg(install_ids)::text[])
  AND EXISTS (SELECT 1 FROM workflows w WHERE w.org_id = i.org_id AND w.install_id = i.id AND w.kind = 'toggle' AND NOT w.plan_only
              AND w.toggles_version = i.toggles_version AND w.state IN ('queued', 'running', 'waiting', 'succeeded'))
  AND NOT EXISTS (
    SELECT 1 FROM jsonb_each(i.toggles) AS t(name, is_on)
    LEFT JOIN resources r ON r.org_id = i.org_id AND r.install_id = i.id AND r.kind = 'component' AND r.name = t.name
    WHERE (t.is_on = 'true') = (coalesce(r.state, 'absent') = 'absent')
      AND NOT EXISTS (SELECT 1 FROM workflows w WHERE w.org_id = i.org_id AND w.install_id = i.id AND w.kind = 'toggle' AND NOT w.plan_only
                      AND w.toggles_version = i.toggles_version AND w.state IN ('queued', 'running', 'waiting')
                      AND (NOT w.params ? 'components' OR w.params->'components' ? t.name)));
