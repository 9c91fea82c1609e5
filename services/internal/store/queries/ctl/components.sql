-- Components of an app and their revisions. The sandbox is one of them.

-- name: UpsertComponents :many
-- A component that comes back loses its tombstone.
INSERT INTO components AS c (id, org_id, app_id, kind, name)
SELECT unnest(sqlc.arg(ids)::text[]), berth.current_org(), sqlc.arg(app_id)::text, unnest(sqlc.arg(kinds)::text[]), unnest(sqlc.arg(names)::text[])
ON CONFLICT (org_id, app_id, kind, name) DO UPDATE SET tombstoned_at = NULL
RETURNING id, kind, name;

-- name: ListComponents :many
-- All that ever were part of the app.
SELECT * FROM components WHERE app_id = sqlc.arg(app_id) ORDER BY kind DESC, name;

-- name: TombstoneComponents :exec
UPDATE components SET tombstoned_at = now() WHERE id = ANY (sqlc.arg(ids)::text[]);

-- name: UpsertRevisions :many
-- The revisions with these digests, new or as they were.
INSERT INTO component_revisions AS r (id, org_id, component_id, type, build_digest, deploy_digest, spec, policies)
SELECT unnest(sqlc.arg(ids)::text[]), berth.current_org(), unnest(sqlc.arg(component_ids)::text[]), unnest(sqlc.arg(types)::text[]),
       unnest(sqlc.arg(build_digests)::text[]), unnest(sqlc.arg(deploy_digests)::text[]), unnest(sqlc.arg(specs)::jsonb[]),
       nullif(unnest(sqlc.arg(policies)::jsonb[]), 'null')
ON CONFLICT (org_id, component_id, build_digest, deploy_digest) DO UPDATE SET type = excluded.type
RETURNING id, component_id;
