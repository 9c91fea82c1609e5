-- The state tree of installs, append-only.

-- name: GetStateTree :one
-- One version, or with 0 the newest that is not of a preview.
SELECT * FROM state_versions
WHERE install_id = sqlc.arg(install_id) AND (sqlc.arg(version)::int = 0 AND version > 0 OR version = sqlc.arg(version))
ORDER BY version DESC LIMIT 1;

-- name: NewestPreviewTree :one
-- The newest tree that was made for a preview: their versions count down from -1.
SELECT * FROM state_versions WHERE install_id = sqlc.arg(install_id) AND version < 0 ORDER BY version LIMIT 1;
