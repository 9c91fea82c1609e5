-- How what is live differs from what was deployed.

-- name: RecentLooks :many
-- The newest looks at what a change made live, newest first.
SELECT scheduled_at, coalesce(error, '')::text AS error, coalesce(report ->> 'digest', '')::text AS digest,
       coalesce(report ->> 'class', '')::text AS class, coalesce((report ->> 'at_once')::boolean, false)::boolean AS at_once
FROM drift_looks
WHERE resource_id = sqlc.arg(resource_id) AND change_id = sqlc.arg(change_id)
ORDER BY scheduled_at DESC LIMIT sqlc.arg(most);

-- name: LooksOfInstall :many
-- The newest look at each resource that is about what is live now, and the newest one that did not fail.
SELECT DISTINCT ON (l.resource_id, l.error IS NULL) l.resource_id, l.scheduled_at, l.looked_at, coalesce(l.error, '')::text AS error,
       coalesce(l.report, 'null')::jsonb AS report
FROM drift_looks l JOIN resources r ON r.org_id = l.org_id AND r.id = l.resource_id AND r.live_change_id = l.change_id
WHERE l.install_id = sqlc.arg(install_id)
ORDER BY l.resource_id, l.error IS NULL, l.scheduled_at DESC;

-- name: DropLooks :exec
-- Keeps the newest looks at a resource.
DELETE FROM drift_looks l WHERE l.resource_id = sqlc.arg(resource_id) AND l.scheduled_at < (
    SELECT min(n.scheduled_at) FROM (SELECT k.scheduled_at FROM drift_looks k WHERE k.resource_id = sqlc.arg(resource_id) ORDER BY k.scheduled_at DESC LIMIT sqlc.arg(keep)) n);

-- name: TrimLooks :exec
-- What is not the newest look keeps no list of objects.
UPDATE drift_looks l SET report = l.report - 'objects'
WHERE l.resource_id = sqlc.arg(resource_id) AND l.report ? 'objects' AND l.scheduled_at < (
    SELECT max(n.scheduled_at) FROM drift_looks n WHERE n.resource_id = sqlc.arg(resource_id) AND n.report IS NOT NULL);

-- name: OpenDrift :many
-- The episodes of an install that go on.
SELECT * FROM drift_episodes WHERE install_id = sqlc.arg(install_id) AND closed_at IS NULL;

-- name: OpenDriftEpisode :exec
INSERT INTO drift_episodes (id, org_id, install_id, resource_id, change_id, class, digest, opened_at, seen_at)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(install_id), sqlc.arg(resource_id), sqlc.arg(change_id), sqlc.arg(class), sqlc.arg(digest),
        sqlc.arg(opened_at), sqlc.arg(seen_at))
ON CONFLICT (org_id, resource_id) WHERE closed_at IS NULL DO NOTHING;

-- name: KeepDriftEpisode :exec
UPDATE drift_episodes SET class = sqlc.arg(class), digest = sqlc.arg(digest), seen_at = sqlc.arg(seen_at) WHERE id = sqlc.arg(id) AND closed_at IS NULL;

-- name: CloseDriftEpisode :exec
UPDATE drift_episodes SET closed_at = sqlc.arg(closed_at)::timestamptz, closed_by = sqlc.arg(closed_by)::text WHERE id = sqlc.arg(id) AND closed_at IS NULL;

-- name: DropDriftEpisodes :exec
-- Keeps the newest episodes of a resource.
DELETE FROM drift_episodes e WHERE e.resource_id = sqlc.arg(resource_id) AND e.closed_at IS NOT NULL AND e.opened_at < (
    SELECT min(n.opened_at) FROM (SELECT k.opened_at FROM drift_episodes k WHERE k.resource_id = sqlc.arg(resource_id) ORDER BY k.opened_at DESC LIMIT sqlc.arg(keep)) n);

-- name: SetDrift :exec
UPDATE resources SET drift = sqlc.arg(drift), version = version + 1, updated_at = now() WHERE id = sqlc.arg(id) AND drift <> sqlc.arg(drift)::text;

-- name: AskForLook :exec
-- Has the runner look at these resources now.
UPDATE resources SET drift_asked_at = sqlc.arg(at)::timestamptz, version = version + 1, updated_at = now() WHERE id = ANY (sqlc.arg(ids)::text[]);

-- name: EndsOfChanges :many
SELECT id, finished_at::timestamptz AS finished_at FROM changes WHERE id = ANY (sqlc.arg(ids)::text[]) AND finished_at IS NOT NULL;

-- name: DriftEpisodes :many
-- Episodes of drift in all installs that the caller may see, newest first; a filter that is
-- empty lets all pass. A page begins behind the episode of that time and id. The three
-- lists are as in ShowInstalls.
SELECT e.id, e.resource_id, e.change_id, e.class, e.opened_at, e.seen_at, e.closed_at, coalesce(e.closed_by, '')::text AS closed_by,
       r.kind, r.name, r.type, i.id AS install_id, i.name AS install_name, a.id AS app_id, a.name AS app_name, c.id AS customer_id, c.name AS customer_name
FROM drift_episodes e
JOIN resources r ON r.org_id = e.org_id AND r.id = e.resource_id
JOIN installs i ON i.org_id = e.org_id AND i.id = e.install_id
JOIN apps a ON a.org_id = i.org_id AND a.id = i.app_id
JOIN customers c ON c.org_id = i.org_id AND c.id = i.customer_id
WHERE i.forgotten_at IS NULL
  AND (sqlc.arg(install_id)::text = '' OR i.id = sqlc.arg(install_id))
  AND (sqlc.arg(app_id)::text = '' OR i.app_id = sqlc.arg(app_id))
  AND (sqlc.arg(class)::text = '' OR e.class = sqlc.arg(class))
  AND (sqlc.arg(closed_too)::bool OR e.closed_at IS NULL)
  AND (sqlc.arg(everywhere)::bool OR i.customer_id = ANY (sqlc.arg(customer_ids)::text[]) OR i.app_id = ANY (sqlc.arg(app_ids)::text[]) OR i.id = ANY (sqlc.arg(install_ids)::text[]))
  AND (sqlc.arg(after)::text = '' OR e.id < sqlc.arg(after)::text)
ORDER BY e.id DESC LIMIT sqlc.arg(most);
