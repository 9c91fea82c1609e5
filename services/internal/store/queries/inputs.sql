-- Inputs of installs; each change is a new version.

-- name: AddInputs :one
INSERT INTO install_inputs (org_id, install_id, version, values, sealed, created_by)
VALUES (berth.current_org(), sqlc.arg(install_id), sqlc.arg(version), sqlc.arg(plain), sqlc.narg(sealed), sqlc.arg(created_by))
RETURNING *;

-- name: GetInputs :one
SELECT * FROM install_inputs WHERE install_id = sqlc.arg(install_id) AND version = sqlc.arg(version);

-- name: SetInputsVersion :exec
UPDATE installs SET inputs_version = sqlc.arg(version) WHERE id = sqlc.arg(install_id);
