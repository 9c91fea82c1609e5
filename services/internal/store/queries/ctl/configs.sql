-- Configs: the immutable, numbered versions of an app folder.

-- name: InsertConfig :one
-- Under the lock of the app's row, which makes the number unique.
INSERT INTO configs (id, org_id, app_id, number, digest, bundle_digest, body, cli_version, created_by,
                     message, git_commit, git_author, git_modified)
SELECT sqlc.arg(id)::text, berth.current_org(), sqlc.arg(app_id)::text, coalesce(max(number), 0) + 1, sqlc.arg(digest)::text,
       sqlc.arg(bundle_digest)::text, sqlc.arg(body)::json, sqlc.arg(cli_version)::text, sqlc.arg(created_by)::text,
       sqlc.arg(message)::text, sqlc.arg(git_commit)::text, sqlc.arg(git_author)::text, sqlc.arg(git_modified)::boolean
FROM configs WHERE app_id = sqlc.arg(app_id)
RETURNING id, app_id, number, digest;

-- name: InsertConfigItems :exec
INSERT INTO config_items (org_id, config_id, component_id, revision_id, build_id)
SELECT berth.current_org(), sqlc.arg(config_id)::text, unnest(sqlc.arg(component_ids)::text[]),
       unnest(sqlc.arg(revision_ids)::text[]), unnest(sqlc.arg(build_ids)::text[]);

-- name: ConfigHead :one
-- A config without its body, which may be large: that with the number, or the
-- newest of the app, which is the one synced last, when that is 0.
SELECT id, app_id, number, digest FROM configs
WHERE app_id = sqlc.arg(app_id)
  AND (sqlc.arg(number)::int = 0 OR number = sqlc.arg(number))
ORDER BY number DESC LIMIT 1;

-- name: NewestConfig :one
SELECT * FROM configs WHERE app_id = sqlc.arg(app_id) ORDER BY number DESC LIMIT 1;

-- name: FindConfig :one
-- A config by id, or by the name of its app and its number.
SELECT sqlc.embed(c), a.name AS app_name
FROM configs c JOIN apps a ON a.org_id = c.org_id AND a.id = c.app_id
WHERE c.id = sqlc.arg(id) OR (a.name = sqlc.arg(app_name) AND c.number = sqlc.arg(number) AND a.deleted_at IS NULL);

-- name: ListConfigs :many
-- Newest first; before 0 starts with the newest.
SELECT id, app_id, number, digest, bundle_digest, cli_version, created_by, created_at FROM configs
WHERE app_id = sqlc.arg(app_id) AND (sqlc.arg(before)::int = 0 OR number < sqlc.arg(before))
ORDER BY number DESC LIMIT sqlc.arg(most);

-- name: ItemsBefore :many
-- What stands in a config, each with what its own build was made from: what a
-- sync compares with.
SELECT i.component_id, i.revision_id, r.build_digest, r.deploy_digest, b.source AS build_source
FROM config_items i
JOIN component_revisions r ON r.id = i.revision_id
JOIN builds b ON b.id = i.build_id
WHERE i.config_id = sqlc.arg(config_id);

-- name: NewestReleaseOfConfigs :many
SELECT DISTINCT ON (config_id) config_id, id, number FROM releases
WHERE config_id = ANY (sqlc.arg(config_ids)::text[]) ORDER BY config_id, number DESC;
