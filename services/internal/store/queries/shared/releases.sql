-- What package release asks: the builds of a config, and its releases.

-- name: ListConfigItems :many
-- What stands in these configs, each with the build that counts: the newest one
-- of the same component and build digest, which is that of the item itself
-- until somebody asks for a rebuild. Rows are joined by their ids alone, which
-- leaves no other index to choose while statistics are old.
SELECT i.config_id, i.component_id, i.revision_id, c.kind, c.name, r.type, r.build_digest, r.deploy_digest,
       b.id AS build_id, b.state AS build_state, b.error AS build_error, b.source AS build_source,
       -- Rises with every build of it and every state that one reaches.
       (SELECT sum(CASE x.state WHEN 'queued' THEN 1 WHEN 'running' THEN 2 ELSE 3 END) FROM builds x
        WHERE x.component_id = i.component_id AND x.build_digest = r.build_digest)::bigint AS build_version,
       coalesce(b.artifact_repository, '')::text AS artifact_repository, coalesce(b.artifact_digest, '')::text AS artifact_digest
FROM config_items i
JOIN components c ON c.id = i.component_id
JOIN component_revisions r ON r.id = i.revision_id
JOIN LATERAL (
    SELECT * FROM builds x WHERE x.component_id = i.component_id AND x.build_digest = r.build_digest ORDER BY x.id DESC LIMIT 1
) b ON true
WHERE i.config_id = ANY (sqlc.arg(config_ids)::text[])
ORDER BY i.config_id, c.kind DESC, c.name;

-- name: AddRelease :one
-- Under the lock of the app's row, which makes the number unique.
INSERT INTO releases (id, org_id, app_id, number, config_id, made_by, digest)
SELECT sqlc.arg(id)::text, berth.current_org(), sqlc.arg(app_id)::text, coalesce(max(number), 0) + 1, sqlc.arg(config_id)::text, sqlc.arg(made_by)::text, sqlc.arg(digest)::text
FROM releases WHERE app_id = sqlc.arg(app_id)
RETURNING *;

-- name: AddReleaseItems :exec
INSERT INTO release_items (org_id, release_id, component_id, revision_id, build_id, artifact_repository, artifact_digest)
SELECT berth.current_org(), sqlc.arg(release_id)::text, unnest(sqlc.arg(component_ids)::text[]), unnest(sqlc.arg(revision_ids)::text[]),
       unnest(sqlc.arg(build_ids)::text[]), unnest(sqlc.arg(artifact_repositories)::text[]), unnest(sqlc.arg(artifact_digests)::text[]);

-- name: NewestReleaseOfConfig :one
SELECT * FROM releases WHERE config_id = sqlc.arg(config_id) ORDER BY number DESC LIMIT 1;
