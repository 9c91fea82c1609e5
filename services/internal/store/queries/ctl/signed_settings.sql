-- Signed settings as ctl-api publishes them. All run inside store.Tx of the org.

-- name: LatestSettings :one
SELECT version, digest, expires_at, created_at FROM settings_versions WHERE install_id = sqlc.arg(install_id) ORDER BY version DESC LIMIT 1;

-- name: InsertSettings :exec
INSERT INTO settings_versions (org_id, install_id, version, digest, envelope, expires_at)
VALUES (berth.current_org(), sqlc.arg(install_id), sqlc.arg(version), sqlc.arg(digest), sqlc.arg(envelope), sqlc.arg(expires_at));
