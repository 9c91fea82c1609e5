-- Credentials of runners for the org's registry; only the hash is kept.

-- name: RunnerAddRegistryToken :one
INSERT INTO registry_tokens (hash, org_id, runner_id, session_id, actions, expires_at)
VALUES (sqlc.arg(hash), berth.current_org(), sqlc.arg(runner_id), sqlc.arg(session_id), sqlc.arg(actions),
        now() + make_interval(secs => sqlc.arg(seconds)::float8))
RETURNING expires_at;

-- name: RunnerRevokeRegistryTokens :exec
-- The session that they were given to is over.
UPDATE registry_tokens SET revoked_at = now() WHERE runner_id = sqlc.arg(runner_id) AND revoked_at IS NULL;
