-- Components of an app and their revisions. The sandbox is one of them.

-- name: UpsertComponent :one
-- A component that comes back loses its tombstone.
INSERT INTO components AS c (id, org_id, app_id, kind, name)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(app_id), sqlc.arg(kind), sqlc.arg(name))
ON CONFLICT (org_id, app_id, kind, name) DO UPDATE SET tombstoned_at = NULL
RETURNING *;

-- name: ListComponents :many
-- All that ever were part of the app.
SELECT * FROM components WHERE app_id = sqlc.arg(app_id) ORDER BY kind DESC, name;

-- name: TombstoneComponents :exec
UPDATE components SET tombstoned_at = now() WHERE id = ANY (sqlc.arg(ids)::text[]);

-- name: UpsertRevision :one
-- The revision with these digests, new or as it was.
INSERT INTO component_revisions AS r (id, org_id, component_id, type, build_digest, deploy_digest, spec)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(component_id), sqlc.arg(type), sqlc.arg(build_digest), sqlc.arg(deploy_digest), sqlc.arg(spec))
ON CONFLICT (org_id, component_id, build_digest, deploy_digest) DO UPDATE SET type = excluded.type
RETURNING *;
