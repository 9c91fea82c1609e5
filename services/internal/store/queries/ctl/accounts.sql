-- Accounts: people and machines that hold tokens. The API calls them members.

-- name: InsertAccount :one
INSERT INTO accounts (id, org_id, kind, name, email)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(kind), sqlc.arg(name), sqlc.narg(email))
RETURNING *;

-- name: FindAccount :one
-- An account by id or name.
SELECT * FROM accounts WHERE id = sqlc.arg(ref) OR name = sqlc.arg(ref)
ORDER BY id = sqlc.arg(ref) DESC LIMIT 1;

-- name: ListAccounts :many
SELECT * FROM accounts WHERE id > sqlc.arg(after) ORDER BY id LIMIT sqlc.arg(most);

-- name: DisableAccount :one
UPDATE accounts SET disabled_at = coalesce(disabled_at, now()) WHERE id = sqlc.arg(id) RETURNING *;

-- name: CountOtherAdmins :one
-- How many enabled accounts other than this one may administer the whole org.
SELECT count(DISTINCT a.id) FROM accounts a
JOIN grants g ON g.org_id = a.org_id AND g.account_id = a.id
WHERE a.id <> sqlc.arg(account_id) AND a.disabled_at IS NULL
  AND g.role IN ('platform', 'admin') AND num_nonnulls(g.customer_id, g.app_id, g.install_id) = 0;
