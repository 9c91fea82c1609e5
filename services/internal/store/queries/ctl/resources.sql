-- Resources of installs: the stack, the sandbox and each component.

-- name: EnsureResource :exec
-- Makes the row when it is not there.
INSERT INTO resources (id, org_id, install_id, kind, component_id, name, type)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(install_id), sqlc.arg(kind), sqlc.narg(component_id), sqlc.arg(name), sqlc.arg(type))
ON CONFLICT (org_id, install_id, kind, name) DO NOTHING;

-- name: ShowResources :many
-- Resources with the number of the release that is live; one by id or name, or
-- all with an empty ref. What its last plan says of a rehearsal is null when it was real.
SELECT sqlc.embed(r), l.number AS live_release_number, coalesce(c.plan -> 'rehearsed', 'null')::jsonb AS rehearsed,
  coalesce(v.spec ->> 'kubernetes_context', '')::text AS kubernetes_context, (o.tombstoned_at IS NOT NULL)::boolean AS orphaned
FROM resources r LEFT JOIN components o ON o.org_id = r.org_id AND o.id = r.component_id
LEFT JOIN releases l ON l.org_id = r.org_id AND l.id = r.live_release_id
LEFT JOIN changes c ON c.org_id = r.org_id AND c.id = r.live_change_id
LEFT JOIN component_revisions v ON v.org_id = r.org_id AND v.id = r.live_revision_id
WHERE r.install_id = sqlc.arg(install_id) AND (sqlc.arg(ref)::text = '' OR r.id = sqlc.arg(ref) OR r.name = sqlc.arg(ref))
ORDER BY array_position(ARRAY['stack', 'sandbox', 'secrets', 'component'], r.kind), r.name;

-- name: LiveRevisions :many
-- What is live of the sandbox and the components of these installs.
SELECT r.install_id, r.kind, r.name, v.build_digest, v.deploy_digest, coalesce(r.live_artifact_digest, '')::text AS artifact_digest
FROM resources r
JOIN component_revisions v ON v.org_id = r.org_id AND v.id = r.live_revision_id
WHERE r.install_id = ANY (sqlc.arg(install_ids)::text[]) AND r.state <> 'absent'
ORDER BY r.install_id, r.kind DESC, r.name;

-- name: OrphansOfInstall :many
-- The resources of an install whose component a sync took out of the app.
SELECT r.id FROM resources r JOIN components o ON o.org_id = r.org_id AND o.id = r.component_id
WHERE r.install_id = sqlc.arg(install_id) AND o.tombstoned_at IS NOT NULL ORDER BY r.id;

-- name: ResourcesOfInstalls :many
-- Resources of all installs that the caller may see, by the install's name; a
-- filter that is empty lets all pass. A page begins behind the resource of that
-- name, kind and install. The three lists are as in ShowInstalls.
SELECT r.id, r.kind, r.name, r.type, r.health, r.health_since, r.drift, r.live_change_id, r.locked_by, r.updated_at, r.live_release_id,
       s.state, i.id AS install_id, i.name AS install_name, a.id AS app_id, a.name AS app_name, c.id AS customer_id, c.name AS customer_name,
       l.number AS live_release_number
FROM installs i
JOIN resources r ON r.org_id = i.org_id AND r.install_id = i.id
JOIN apps a ON a.org_id = i.org_id AND a.id = i.app_id
JOIN customers c ON c.org_id = i.org_id AND c.id = i.customer_id
LEFT JOIN releases l ON l.org_id = r.org_id AND l.id = r.live_release_id
LEFT JOIN components o ON o.org_id = r.org_id AND o.id = r.component_id
LEFT JOIN changes g ON g.org_id = r.org_id AND g.id = r.live_change_id
-- As people are shown it: what is no longer part of the app, and what a stand-in is live of.
CROSS JOIN LATERAL (SELECT coalesce(CASE WHEN r.state = 'live' AND o.tombstoned_at IS NOT NULL THEN 'orphaned'
                                WHEN r.state = 'live' AND coalesce(g.plan -> 'rehearsed', 'null') <> 'null' THEN 'rehearsed'
                                ELSE r.state END, '')::text AS state) s
WHERE i.forgotten_at IS NULL
  AND (sqlc.arg(install_id)::text = '' OR i.id = sqlc.arg(install_id))
  AND (sqlc.arg(app_id)::text = '' OR i.app_id = sqlc.arg(app_id))
  AND (sqlc.arg(kind)::text = '' OR r.kind = sqlc.arg(kind))
  AND (sqlc.arg(type)::text = '' OR r.type = sqlc.arg(type))
  AND (sqlc.arg(component)::text = '' OR r.kind = 'component' AND r.name = sqlc.arg(component))
  AND (sqlc.arg(health)::text = '' OR r.health = sqlc.arg(health))
  AND (sqlc.arg(state)::text = '' OR s.state = sqlc.arg(state))
  AND (sqlc.arg(everywhere)::bool OR i.customer_id = ANY (sqlc.arg(customer_ids)::text[]) OR i.app_id = ANY (sqlc.arg(app_ids)::text[]) OR i.id = ANY (sqlc.arg(install_ids)::text[]))
  AND i.name >= sqlc.arg(after_install)::text -- for the index
  AND (i.name, r.kind, r.name) > (sqlc.arg(after_install)::text, sqlc.arg(after_kind)::text, sqlc.arg(after_name)::text)
ORDER BY i.name, r.kind, r.name LIMIT sqlc.arg(most);

-- name: HealthHistory :many
-- What the sandbox and the components of installs were within a time: the row before it and
-- those in it, for each in order of time.
SELECT r.install_id, r.id, r.kind, r.name, h.at, h.state, h.health, coalesce(h.live_change_id, '')::text AS change_id
FROM resources r CROSS JOIN LATERAL (
    (SELECT y.at, y.n, y.state, y.health, y.live_change_id FROM resource_history y
     WHERE y.org_id = r.org_id AND y.resource_id = r.id AND y.at <= sqlc.arg(since) ORDER BY y.at DESC, y.n DESC LIMIT 1)
    UNION ALL
    (SELECT y.at, y.n, y.state, y.health, y.live_change_id FROM resource_history y
     WHERE y.org_id = r.org_id AND y.resource_id = r.id AND y.at > sqlc.arg(since) AND y.at < sqlc.arg(until))
) h
WHERE r.install_id = ANY (sqlc.arg(install_ids)::text[]) AND r.kind IN ('sandbox', 'component')
ORDER BY r.install_id, array_position(ARRAY['sandbox', 'component'], r.kind), r.name, r.id, h.at, h.n LIMIT sqlc.arg(most);
