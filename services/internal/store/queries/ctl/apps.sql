-- Apps, and the uploaded archives.

-- name: InsertApp :one
INSERT INTO apps (id, org_id, name, display_name, description, labels)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(name), sqlc.arg(display_name), sqlc.arg(description), sqlc.arg(labels))
RETURNING *;

-- name: InsertNewApp :exec
-- Unless somebody else has made one of this name: then that is the app.
INSERT INTO apps (id, org_id, name, display_name, description, labels)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(name), sqlc.arg(display_name), sqlc.arg(description), sqlc.arg(labels))
ON CONFLICT (org_id, name) WHERE deleted_at IS NULL DO NOTHING;

-- name: FindApp :one
-- An app by id or name.
SELECT * FROM apps WHERE (id = sqlc.arg(ref) OR name = sqlc.arg(ref)) AND deleted_at IS NULL
ORDER BY id = sqlc.arg(ref) DESC LIMIT 1;

-- name: LockApp :one
-- Syncs, rebuilds and releases of one app go one after the other.
SELECT * FROM apps WHERE id = sqlc.arg(id) FOR UPDATE;

-- name: ListApps :many
SELECT * FROM apps WHERE deleted_at IS NULL AND name > sqlc.arg(after) ORDER BY name LIMIT sqlc.arg(most);

-- name: AppHeads :many
-- The newest config of each of these apps, and the release that is deployed when
-- nobody names one, as FindReleaseOfApp has it; empty and 0 for none.
SELECT a.id AS app_id, coalesce(c.id, '')::text AS config_id, coalesce(c.number, 0)::int AS config_number,
       coalesce(r.id, '')::text AS release_id, coalesce(r.number, 0)::int AS release_number
FROM apps a
LEFT JOIN LATERAL (SELECT id, number FROM configs WHERE app_id = a.id ORDER BY number DESC LIMIT 1) c ON true
LEFT JOIN LATERAL (
    SELECT l.id, l.number FROM releases l JOIN configs o ON o.org_id = l.org_id AND o.id = l.config_id
    WHERE l.app_id = a.id ORDER BY o.number DESC, l.number DESC LIMIT 1) r ON true
WHERE a.id = ANY (sqlc.arg(app_ids)::text[]);

-- name: UpdateApp :one
-- Changes what is given.
UPDATE apps SET display_name = coalesce(sqlc.narg(display_name), display_name),
    description = coalesce(sqlc.narg(description), description),
    labels = coalesce(sqlc.narg(labels), labels)
WHERE id = sqlc.arg(id) RETURNING *;

-- name: DeleteApp :exec
UPDATE apps SET deleted_at = now() WHERE id = sqlc.arg(id);

-- name: CountInstallsOfApp :one
SELECT count(*) FROM installs WHERE app_id = sqlc.arg(app_id) AND forgotten_at IS NULL;

-- name: InsertBlob :execrows
INSERT INTO blobs (org_id, digest, size_bytes, body)
VALUES (berth.current_org(), sqlc.arg(digest), sqlc.arg(size_bytes), sqlc.arg(body))
ON CONFLICT DO NOTHING;

-- name: HaveBlobs :many
-- Those of the digests that are stored.
SELECT digest FROM blobs WHERE digest = ANY (sqlc.arg(digests)::text[]);

-- name: ReadBlob :one
SELECT body FROM blobs WHERE digest = sqlc.arg(digest);

-- name: ReadBlobs :many
SELECT digest, body FROM blobs WHERE digest = ANY (sqlc.arg(digests)::text[]);
