-- Variables of apps. All run inside store.Tx of the org.

-- name: AppVariablesVersion :one
-- How often the app's variables have changed.
SELECT variables_version FROM apps WHERE id = sqlc.arg(app_id);

-- name: ListAppVariables :many
SELECT * FROM app_variables WHERE app_id = sqlc.arg(app_id) ORDER BY name COLLATE "C";

-- name: PageOfAppVariables :many
SELECT * FROM app_variables WHERE app_id = sqlc.arg(app_id) AND name COLLATE "C" > sqlc.arg(after)
ORDER BY name COLLATE "C" LIMIT sqlc.arg(most);

-- name: GetAppVariable :one
SELECT * FROM app_variables WHERE app_id = sqlc.arg(app_id) AND name = sqlc.arg(name);

-- name: NextAppVariablesVersion :one
UPDATE apps SET variables_version = variables_version + 1 WHERE id = sqlc.arg(app_id) RETURNING variables_version;

-- name: SetAppVariable :one
INSERT INTO app_variables (org_id, app_id, name, value, sealed, version, updated_by)
VALUES (berth.current_org(), sqlc.arg(app_id), sqlc.arg(name), sqlc.narg(value), sqlc.narg(sealed), sqlc.arg(version), sqlc.arg(updated_by))
ON CONFLICT (org_id, app_id, name) DO UPDATE
SET value = excluded.value, sealed = excluded.sealed, version = excluded.version, updated_by = excluded.updated_by, updated_at = now()
RETURNING *;

-- name: DeleteAppVariable :exec
DELETE FROM app_variables WHERE app_id = sqlc.arg(app_id) AND name = sqlc.arg(name);

-- name: DeleteAppVariables :exec
-- With the app go its secrets.
DELETE FROM app_variables WHERE app_id = sqlc.arg(app_id);

-- name: WakeInstallsOfApp :exec
-- ctl-api looks at every install of the app: what they all read has changed.
SELECT berth.wake_install(id) FROM installs WHERE app_id = sqlc.arg(app_id) AND forgotten_at IS NULL;
