-- Tokens with which people pull from the org's registry, and push versions of the runner.

-- name: AddRegistryToken :one
-- It ends with the token that it is made with, at the latest.
INSERT INTO registry_tokens (hash, org_id, actions, expires_at, token_id, repositories)
SELECT sqlc.arg(hash)::bytea, berth.current_org(), sqlc.arg(actions)::text[], least(now() + make_interval(secs => sqlc.arg(seconds)::float8), t.expires_at),
    t.id, sqlc.arg(repositories)::text
FROM tokens t WHERE t.id = sqlc.arg(token_id)::text AND t.revoked_at IS NULL
RETURNING expires_at;
