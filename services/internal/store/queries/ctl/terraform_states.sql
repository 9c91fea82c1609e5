-- Terraform states as people of the vendor see them: never their bytes.

-- name: ShowTerraformStates :many
-- The current state of each resource of an install that has one, or a lock, with who
-- holds that; one by id or name, or all with an empty ref.
SELECT r.id AS resource_id, r.kind, r.name, r.locked_by,
  coalesce(s.id, '')::text AS state_id, coalesce(s.serial, 0)::bigint AS serial, coalesce(s.lineage, '')::text AS lineage,
  coalesce(s.digest, '')::text AS digest, coalesce(s.summary, '{}')::jsonb AS summary, coalesce(s.job_id, '')::text AS job_id,
  coalesce(w.change_id, '')::text AS change_id, coalesce(s.created_at, r.updated_at)::timestamptz AS written_at,
  coalesce(l.lock_id, '')::text AS lock_id, coalesce(l.info, '{}')::jsonb AS lock_info, coalesce(l.job_id, '')::text AS lock_job_id,
  coalesce(l.attempt, 0)::int AS lock_attempt, coalesce(l.fence, 0)::bigint AS lock_fence, l.locked_at,
  coalesce(h.state, '')::text AS lock_job_state, coalesce(h.change_id, '')::text AS lock_change_id
FROM resources r
LEFT JOIN tf_states s ON s.org_id = r.org_id AND s.resource_id = r.id AND s.kind = 'current'
LEFT JOIN runner_jobs w ON w.org_id = s.org_id AND w.id = s.job_id
LEFT JOIN tf_locks l ON l.org_id = r.org_id AND l.resource_id = r.id
LEFT JOIN runner_jobs h ON h.org_id = l.org_id AND h.id = l.job_id
WHERE r.install_id = sqlc.arg(install_id) AND (sqlc.arg(ref)::text = '' OR r.id = sqlc.arg(ref) OR r.name = sqlc.arg(ref))
  AND (s.id IS NOT NULL OR l.lock_id IS NOT NULL)
ORDER BY r.kind DESC, r.name;

-- name: TerraformStateHistory :many
-- The states of a resource, the newest first: also those that were refused, with the
-- reason. after is the id of the last one of the page before, or empty.
SELECT s.id, s.serial, s.lineage, s.kind, s.digest, coalesce(s.summary ->> 'bytes', '0')::bigint AS bytes, s.job_id, s.attempt, s.reason,
  s.created_at, coalesce(j.change_id, '')::text AS change_id
FROM tf_states s
JOIN runner_jobs j ON j.org_id = s.org_id AND j.id = s.job_id
WHERE s.resource_id = sqlc.arg(resource_id)
  AND (sqlc.arg(after)::text = '' OR (s.created_at, s.id) < (SELECT a.created_at, a.id FROM tf_states a WHERE a.id = sqlc.arg(after) AND a.resource_id = s.resource_id))
ORDER BY s.created_at DESC, s.id DESC
LIMIT sqlc.arg(most);

-- name: HoldsReleases :one
-- Whether the state of a resource has revisions of Helm releases in it.
SELECT EXISTS (SELECT 1 FROM tf_states s WHERE s.resource_id = sqlc.arg(resource_id) AND s.kind = 'current' AND s.summary #> '{resources,helm_revision}' IS NOT NULL);

-- name: LockResourceRow :one
-- Keeps the resource as it is, no grant of it, until the transaction ends.
SELECT id FROM resources WHERE id = sqlc.arg(id) FOR UPDATE;

-- name: RaiseFence :one
-- Anyone who still works under an older grant writes no state any more.
UPDATE resources SET fence = fence + 1, version = version + 1, updated_at = now() WHERE id = sqlc.arg(id) AND locked_by IS NULL RETURNING fence;

-- name: StateMarks :many
-- Which state of these resources is the one that counts.
SELECT resource_id, lineage, serial, digest FROM tf_states WHERE resource_id = ANY (sqlc.arg(ids)::text[]) AND kind = 'current';
