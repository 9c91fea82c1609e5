-- The state tree of installs, append-only.

-- name: GetStateTree :one
-- One version, or the newest with 0.
SELECT * FROM state_versions
WHERE install_id = sqlc.arg(install_id) AND (sqlc.arg(version)::int = 0 OR version = sqlc.arg(version))
ORDER BY version DESC LIMIT 1;
