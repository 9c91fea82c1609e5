-- Builds, as people see them and ask for them. The builder works on them.

-- name: InsertBuild :one
INSERT INTO builds (id, org_id, app_id, component_id, revision_id, build_digest, source, reason, requested_by, trace)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(app_id), sqlc.arg(component_id), sqlc.arg(revision_id), sqlc.arg(build_digest),
        sqlc.arg(source), sqlc.arg(reason), sqlc.arg(requested_by), sqlc.arg(trace))
RETURNING *;

-- name: NewestBuilds :many
-- The newest build of each build digest of these components: what a sync
-- compares with.
SELECT DISTINCT ON (b.component_id, b.build_digest) b.id, b.component_id, b.build_digest, b.state, b.source,
       coalesce(b.artifact_repository, '')::text AS artifact_repository, coalesce(b.artifact_digest, '')::text AS artifact_digest
FROM builds b
WHERE b.component_id = ANY (sqlc.arg(component_ids)::text[])
ORDER BY b.component_id, b.build_digest, b.id DESC;

-- name: ShowBuilds :many
-- Builds with the names around them; every filter that is empty lets all pass.
SELECT sqlc.embed(b), a.name AS app_name, c.name AS component_name
FROM builds b
JOIN apps a ON a.org_id = b.org_id AND a.id = b.app_id
JOIN components c ON c.org_id = b.org_id AND c.id = b.component_id
WHERE (sqlc.arg(id)::text = '' OR b.id = sqlc.arg(id))
  AND (sqlc.arg(app_id)::text = '' OR b.app_id = sqlc.arg(app_id))
  AND (sqlc.arg(config_id)::text = '' OR EXISTS (
        SELECT FROM config_items i JOIN component_revisions r ON r.org_id = i.org_id AND r.id = i.revision_id
        WHERE i.config_id = sqlc.arg(config_id) AND i.component_id = b.component_id AND r.build_digest = b.build_digest))
  AND (sqlc.arg(state)::text = '' OR b.state = sqlc.arg(state))
  AND (sqlc.arg(before)::text = '' OR b.id < sqlc.arg(before))
ORDER BY b.id DESC LIMIT sqlc.arg(most);

-- name: ShowJobsOfBuilds :many
-- The newest runner job of each build, with the streams of its attempts and
-- when its Build Runner was heard of last.
SELECT DISTINCT ON (j.build_id) j.build_id, j.id, j.operation, j.state, j.attempt, j.error, j.queued_at, j.leased_at, j.finished_at,
       (SELECT coalesce(array_agg(l.stream_id ORDER BY l.attempt), '{}')::text[] FROM leases l WHERE l.org_id = j.org_id AND l.job_id = j.id) AS stream_ids,
       n.last_seen_at AS runner_seen_at, n.created_at AS runner_since
FROM runner_jobs j
JOIN runners n ON n.org_id = j.org_id AND n.id = j.runner_id
WHERE j.build_id = ANY (sqlc.arg(build_ids)::text[])
ORDER BY j.build_id, j.id DESC;

-- name: RequestBuildCancel :exec
UPDATE builds SET cancel_requested_at = now()
WHERE id = sqlc.arg(id) AND state IN ('queued', 'running') AND cancel_requested_at IS NULL;
