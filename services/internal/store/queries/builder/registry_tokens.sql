-- Registry tokens, as the registry checks them and as the builder makes its own.

-- name: BuilderOrgOfToken :one
-- The org of a registry token; empty when there is no such token.
SELECT coalesce(berth.org_of_secret('registry', sqlc.arg(hash)::bytea), '')::text;

-- name: BuilderToken :one
SELECT org_id, coalesce(runner_id, '')::text AS runner_id, repositories, actions, expires_at, revoked_at FROM registry_tokens WHERE hash = sqlc.arg(hash);

-- name: BuilderAddToken :one
-- A token of the builder itself: it belongs to no runner.
INSERT INTO registry_tokens (hash, org_id, actions, expires_at)
VALUES (sqlc.arg(hash), berth.current_org(), sqlc.arg(actions), now() + make_interval(secs => sqlc.arg(seconds)::float8))
RETURNING expires_at;

-- name: BuilderDropTokens :exec
-- Tokens that ended a while ago; nobody asks about them any more.
DELETE FROM registry_tokens WHERE expires_at < now() - make_interval(secs => sqlc.arg(seconds)::float8);
