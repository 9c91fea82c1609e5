-- Sessions of browsers, which are rows of tokens, and the links that open them.

-- name: InsertBrowserSession :one
-- It ends after so many seconds, and never later than what opened it.
INSERT INTO tokens (id, org_id, account_id, name, prefix, hash, kind, expires_at, idle_seconds, last_used_at, user_agent, made_with)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(account_id), 'browser', sqlc.arg(prefix), sqlc.arg(hash), 'session',
    least(now() + make_interval(secs => sqlc.arg(seconds)::float8), sqlc.narg(not_after)::timestamptz), sqlc.arg(idle_seconds)::int, now(),
    sqlc.arg(user_agent)::text, sqlc.narg(made_with))
RETURNING *;

-- name: ListBrowserSessions :many
-- Those that are open: of one account, or of all with an empty one.
SELECT sqlc.embed(t), a.name AS account_name
FROM tokens t JOIN accounts a ON a.org_id = t.org_id AND a.id = t.account_id
WHERE t.kind = 'session' AND t.revoked_at IS NULL AND t.ended_at IS NULL AND t.expires_at > now() AND t.last_used_at > now() - make_interval(secs => t.idle_seconds)
  AND (sqlc.arg(account_id)::text = '' OR t.account_id = sqlc.arg(account_id)) AND t.id > sqlc.arg(after)
ORDER BY t.id LIMIT sqlc.arg(most);

-- name: GetBrowserSession :one
SELECT * FROM tokens WHERE id = sqlc.arg(id) AND kind = 'session';

-- name: EndBrowserSession :many
-- Logs the session with this hash out, if it is open. Repeating it does nothing.
UPDATE tokens SET ended_at = now()
FROM accounts a
WHERE tokens.hash = sqlc.arg(hash) AND tokens.kind = 'session' AND tokens.ended_at IS NULL AND a.org_id = tokens.org_id AND a.id = tokens.account_id
RETURNING tokens.id, a.name AS account_name;

-- name: RevokeSessionsMadeWith :many
-- Ends the sessions that were opened with a token or session, and with those sessions, and
-- so on; tokens stay. Repeat it until it answers nothing, as RevokeTokensMadeWith.
WITH RECURSIVE made(id) AS (
    SELECT t.id FROM tokens t WHERE t.made_with = sqlc.arg(id) AND t.kind = 'session'
    UNION
    SELECT t.id FROM tokens t JOIN made m ON t.made_with = m.id WHERE t.kind = 'session'
)
UPDATE tokens SET revoked_at = now() WHERE tokens.id IN (SELECT made.id FROM made) AND tokens.revoked_at IS NULL
RETURNING tokens.id;

-- name: InsertLoginLink :one
INSERT INTO login_links (hash, org_id, made_with, expires_at)
VALUES (sqlc.arg(hash), berth.current_org(), sqlc.arg(made_with), now() + make_interval(secs => sqlc.arg(seconds)::float8))
RETURNING expires_at;

-- name: DropOldLoginLinks :exec
DELETE FROM login_links WHERE expires_at < now();

-- name: OrgOfLoginLink :one
-- The org that a link opens; empty when there is none. Across all orgs.
SELECT coalesce(berth.org_of_login_link(sqlc.arg(hash)::bytea), '')::text AS org_id;

-- name: TakeLoginLink :one
-- Uses a link up. Of several at once, one gets it.
DELETE FROM login_links WHERE hash = sqlc.arg(hash) RETURNING made_with, (expires_at > now())::bool AS good;
