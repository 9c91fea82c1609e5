-- Versions of the runner that the org offers.

-- name: PutRunnerVersion :one
-- Added again, it is what was added last.
INSERT INTO runner_versions (org_id, version, platform, repository, digest, size_bytes, list, signed_by, created_by)
VALUES (berth.current_org(), sqlc.arg(version), sqlc.arg(platform), sqlc.arg(repository), sqlc.arg(digest), sqlc.arg(size_bytes), sqlc.arg(list), sqlc.arg(signed_by), sqlc.arg(created_by))
ON CONFLICT (org_id, version, platform) DO UPDATE SET
    repository = EXCLUDED.repository, digest = EXCLUDED.digest, size_bytes = EXCLUDED.size_bytes, list = EXCLUDED.list,
    signed_by = EXCLUDED.signed_by, created_by = EXCLUDED.created_by, created_at = now()
RETURNING *;

-- name: RunnerVersions :many
-- All of them, or those of one version.
SELECT * FROM runner_versions
WHERE (sqlc.arg(version)::text = '' OR version = sqlc.arg(version))
ORDER BY created_at DESC, version, platform;

-- name: RemoveRunnerVersion :many
-- What was offered of it; nothing when it was not.
DELETE FROM runner_versions WHERE version = sqlc.arg(version) RETURNING platform;
