-- Grants: which role an account has, and where.

-- name: InsertGrant :one
INSERT INTO grants (id, org_id, account_id, role, customer_id, app_id, install_id, created_by)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(account_id), sqlc.arg(role), sqlc.narg(customer_id), sqlc.narg(app_id), sqlc.narg(install_id), sqlc.narg(created_by))
RETURNING *;

-- name: ListGrantsOfAccounts :many
SELECT * FROM grants WHERE account_id = ANY (sqlc.arg(account_ids)::text[]) ORDER BY id;

-- name: LocateObject :one
-- Where an object stands: the customer, app and install that grants can be
-- limited to. The argument is an id of an install or of something in one, or
-- the name of an install.
SELECT i.id AS install_id, i.customer_id, i.app_id
FROM installs i
WHERE i.id = coalesce(
    (SELECT x.install_id FROM workflows x WHERE x.id = sqlc.arg(ref)),
    (SELECT x.install_id FROM steps x WHERE x.id = sqlc.arg(ref)),
    (SELECT x.install_id FROM changes x WHERE x.id = sqlc.arg(ref)),
    (SELECT x.install_id FROM action_runs x WHERE x.id = sqlc.arg(ref)),
    (SELECT x.install_id FROM runner_jobs x WHERE x.id = sqlc.arg(ref)),
    (SELECT x.install_id FROM runners x WHERE x.id = sqlc.arg(ref)),
    (SELECT x.install_id FROM alerts x WHERE x.id = sqlc.arg(ref)),
    (SELECT n.install_id FROM alarms x JOIN runners n ON n.org_id = x.org_id AND n.id = x.runner_id WHERE x.id = sqlc.arg(ref)),
    (SELECT x.id FROM installs x WHERE x.id = sqlc.arg(ref)),
    (SELECT x.id FROM installs x WHERE x.name = sqlc.arg(ref) AND x.forgotten_at IS NULL));
