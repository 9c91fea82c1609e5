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
