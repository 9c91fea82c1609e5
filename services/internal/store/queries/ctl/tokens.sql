-- Tokens of accounts. Only their SHA-256 is here.

-- name: InsertToken :one
INSERT INTO tokens (id, org_id, account_id, name, prefix, hash, expires_at, made_with)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(account_id), sqlc.arg(name), sqlc.arg(prefix), sqlc.arg(hash), sqlc.narg(expires_at), sqlc.narg(made_with))
RETURNING *;

-- name: TouchToken :exec
-- Written at most once a minute per token.
UPDATE tokens SET last_used_at = now()
WHERE id = sqlc.arg(id) AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute');

-- name: GetToken :one
SELECT * FROM tokens WHERE id = sqlc.arg(id) AND kind = 'token';

-- name: ListTokens :many
-- Of one account, or of all with an empty one.
SELECT sqlc.embed(t), a.name AS account_name
FROM tokens t JOIN accounts a ON a.org_id = t.org_id AND a.id = t.account_id
WHERE t.kind = 'token' AND (sqlc.arg(account_id)::text = '' OR t.account_id = sqlc.arg(account_id)) AND t.id > sqlc.arg(after)
ORDER BY t.id LIMIT sqlc.arg(most);

-- name: RevokeToken :exec
UPDATE tokens SET revoked_at = coalesce(revoked_at, now()) WHERE id = sqlc.arg(id);

-- name: LockToken :one
-- The token as it is now and stays until the end of the transaction: a
-- revocation waits for that.
SELECT expires_at, revoked_at, ended_at FROM tokens WHERE id = sqlc.arg(id) FOR SHARE;

-- name: LockGoodToken :one
-- A token or session that is good now, as it stays until the end of the transaction.
SELECT t.account_id, t.expires_at
FROM tokens t JOIN accounts a ON a.org_id = t.org_id AND a.id = t.account_id
WHERE t.id = sqlc.arg(id) AND t.revoked_at IS NULL AND t.ended_at IS NULL AND a.disabled_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())
  AND (t.idle_seconds IS NULL OR t.last_used_at > now() - make_interval(secs => t.idle_seconds))
FOR SHARE OF t;

-- name: RevokeTokensMadeWith :many
-- Revokes what was made with a token, and with those, and so on. Repeat it until
-- it answers nothing: it waits for one that is being made, and sees it only then.
WITH RECURSIVE made(id) AS (
    SELECT t.id FROM tokens t WHERE t.made_with = sqlc.arg(id)
    UNION
    SELECT t.id FROM tokens t JOIN made m ON t.made_with = m.id
)
UPDATE tokens SET revoked_at = now() WHERE tokens.id IN (SELECT made.id FROM made) AND tokens.revoked_at IS NULL
RETURNING tokens.id;

-- name: RevokeTokensOfAccount :many
UPDATE tokens SET revoked_at = now() WHERE account_id = sqlc.arg(account_id) AND revoked_at IS NULL
RETURNING id;
