-- Signed settings, as runners read them.

-- name: RunnerNewestSettings :one
-- The newest version, when it is higher than the one the runner has.
SELECT version, envelope FROM settings_versions
WHERE install_id = sqlc.arg(install_id) AND version > sqlc.arg(after_version)
ORDER BY version DESC LIMIT 1;

-- name: RunnerSettingsVersion :one
-- The number of the newest settings; 0 when there are none.
SELECT coalesce(max(version), 0)::bigint FROM settings_versions WHERE install_id = sqlc.arg(install_id);
