-- Whom an OpenID Connect provider vouches for.

-- name: FindIdentity :one
-- The account of a subject, if it ever logged in. Two logins at once wait for each other.
UPDATE account_identities i SET last_login_at = now()
FROM accounts a
WHERE i.issuer = sqlc.arg(issuer) AND i.subject = sqlc.arg(subject) AND a.org_id = i.org_id AND a.id = i.account_id
RETURNING a.id, a.name, (a.disabled_at IS NOT NULL)::bool AS disabled;

-- name: InsertIdentity :exec
INSERT INTO account_identities (org_id, issuer, subject, account_id)
VALUES (berth.current_org(), sqlc.arg(issuer), sqlc.arg(subject), sqlc.arg(account_id));

-- name: LockIdentities :exec
-- One login at a time makes an account or becomes the first admin of the org.
SELECT pg_advisory_xact_lock(hashtextextended('berth.identities ' || berth.current_org(), 0));

-- name: CountIdentityAdmins :one
-- How many other enabled accounts of a provider's people administer the org.
SELECT count(DISTINCT a.id) FROM account_identities i
JOIN accounts a ON a.org_id = i.org_id AND a.id = i.account_id
JOIN grants g ON g.org_id = a.org_id AND g.account_id = a.id
WHERE a.id <> sqlc.arg(account_id) AND a.disabled_at IS NULL AND g.role = 'admin' AND num_nonnulls(g.customer_id, g.app_id, g.install_id) = 0;

-- name: SetGrantOfIdentity :one
SELECT berth.set_grant_of_identity(sqlc.arg(account_id)::text, sqlc.arg(role)::text, sqlc.arg(id)::text, sqlc.arg(created_by)::text)::bool AS changed;
