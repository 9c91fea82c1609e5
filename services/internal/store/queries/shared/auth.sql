-- What package auth asks: whose token this is, and what the account may do.

-- name: OrgOfSecret :one
-- The org that the hash of a credential belongs to; empty when there is none.
SELECT coalesce(berth.org_of_secret(sqlc.arg(kind)::text, sqlc.arg(secret_hash)::bytea), '')::text AS org_id;

-- name: AuthenticateToken :one
-- The account behind a token, or behind a browser's session, that is good now.
SELECT t.id AS token_id, t.expires_at, t.last_used_at, a.id AS account_id, a.name AS account_name, a.kind AS account_kind, o.org_id, o.name AS org_name
FROM tokens t
JOIN accounts a ON a.org_id = t.org_id AND a.id = t.account_id
JOIN orgs o ON o.org_id = t.org_id
WHERE t.hash = sqlc.arg(hash) AND t.revoked_at IS NULL AND t.ended_at IS NULL AND a.disabled_at IS NULL
  AND (t.expires_at IS NULL OR t.expires_at > now())
  AND (t.idle_seconds IS NULL OR t.last_used_at > now() - make_interval(secs => t.idle_seconds));

-- name: ListGrantsOfAccounts :many
SELECT * FROM grants WHERE account_id = ANY (sqlc.arg(account_ids)::text[]) ORDER BY id;
