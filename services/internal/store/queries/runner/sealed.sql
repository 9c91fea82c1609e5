-- What only the customer can open, as runner-api gives it out and takes it back.

-- name: RunnerSealedResources :many
-- The resources of an install that have a state or outputs.
SELECT r.id, r.kind, r.name FROM resources r
WHERE r.install_id = sqlc.arg(install_id)
  AND (r.outputs <> '{}' OR EXISTS (SELECT FROM tf_states s WHERE s.org_id = r.org_id AND s.resource_id = r.id AND s.kind = 'current'))
ORDER BY r.name, r.id;

-- name: RunnerSealedResource :one
SELECT id, kind, name, outputs FROM resources WHERE install_id = sqlc.arg(install_id) AND id = sqlc.arg(id);

-- name: RunnerResealState :execrows
-- Other bytes of the same state; nothing when it has moved.
UPDATE tf_states SET body = sqlc.arg(body)::bytea
WHERE resource_id = sqlc.arg(resource_id) AND kind = 'current'
  AND serial = sqlc.arg(serial) AND lineage = sqlc.arg(lineage) AND digest = sqlc.arg(digest);

-- name: RunnerResealOutputs :one
SELECT berth.reseal_outputs(sqlc.arg(install_id)::text, sqlc.arg(id)::text, sqlc.arg(before)::jsonb, sqlc.arg(after)::jsonb)::boolean AS done;

-- name: GetInstallRecovery :one
SELECT * FROM install_recovery WHERE install_id = sqlc.arg(install_id);

-- name: SetInstallRecoveryKey :exec
INSERT INTO install_recovery (org_id, install_id, key_id, signing_key, recipient, change)
VALUES (berth.current_org(), sqlc.arg(install_id), sqlc.arg(key_id)::text, sqlc.arg(signing_key)::text, sqlc.arg(recipient)::text, sqlc.narg(change))
ON CONFLICT (org_id, install_id) DO UPDATE
SET key_id = excluded.key_id, signing_key = excluded.signing_key, recipient = excluded.recipient, change = excluded.change, updated_at = now();

-- name: SetInstallSalt :exec
INSERT INTO install_recovery (org_id, install_id, sealed_salt)
VALUES (berth.current_org(), sqlc.arg(install_id), sqlc.arg(sealed_salt)::bytea)
ON CONFLICT (org_id, install_id) DO UPDATE SET sealed_salt = excluded.sealed_salt, updated_at = now();

-- name: SetInstallHandover :exec
INSERT INTO install_recovery (org_id, install_id, handover)
VALUES (berth.current_org(), sqlc.arg(install_id), sqlc.arg(handover)::jsonb)
ON CONFLICT (org_id, install_id) DO UPDATE SET handover = excluded.handover, updated_at = now();
