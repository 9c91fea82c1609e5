-- Customers: in whose accounts and machines installs run.

-- name: InsertCustomer :one
INSERT INTO customers (id, org_id, name, labels)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(name), sqlc.arg(labels))
RETURNING *;

-- name: FindCustomer :one
-- A customer by id or name.
SELECT * FROM customers WHERE (id = sqlc.arg(ref) OR name = sqlc.arg(ref)) AND deleted_at IS NULL
ORDER BY id = sqlc.arg(ref) DESC LIMIT 1;

-- name: ListCustomers :many
SELECT * FROM customers WHERE deleted_at IS NULL AND name > sqlc.arg(after) ORDER BY name LIMIT sqlc.arg(most);
