-- Keys of the org and its installs.

-- name: InsertKey :one
INSERT INTO keys (id, org_id, purpose, algorithm, key_id, public_key, private_sealed)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(purpose), sqlc.arg(algorithm), sqlc.arg(key_id), sqlc.arg(public_key), sqlc.narg(private_sealed))
RETURNING id;

-- name: ListKeys :many
-- Public halves; of one purpose, or all with an empty one.
SELECT id, install_id, purpose, algorithm, key_id, public_key, created_at, retired_at
FROM keys WHERE sqlc.arg(purpose)::text = '' OR purpose = sqlc.arg(purpose)
ORDER BY id;

-- name: GetDispatchKey :one
-- The org's present dispatch key, its private half sealed.
SELECT * FROM keys WHERE purpose = 'dispatch' AND retired_at IS NULL;
