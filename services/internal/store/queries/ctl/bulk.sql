-- Bulk operations: the same workflow in many installs.

-- name: InsertBulk :one
INSERT INTO bulk_operations (id, org_id, operation, request, version, created_by)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(operation), sqlc.arg(request), sqlc.arg(version), sqlc.arg(created_by))
RETURNING *;

-- name: InsertBulkItems :exec
-- One for each install, in this order.
INSERT INTO bulk_items (org_id, bulk_id, install_id, idx)
SELECT berth.current_org(), sqlc.arg(bulk_id)::text, x.install_id, x.idx
FROM unnest(sqlc.arg(install_ids)::text[]) WITH ORDINALITY AS x (install_id, idx);

-- name: GetBulk :one
SELECT * FROM bulk_operations WHERE id = sqlc.arg(id);

-- name: ListBulks :many
-- A page, newest first, of those that work on an install that the caller may see.
SELECT * FROM bulk_operations b
WHERE (sqlc.arg(after)::text = '' OR b.id < sqlc.arg(after))
  AND (sqlc.arg(everywhere)::bool OR EXISTS (
       SELECT FROM bulk_items x JOIN installs i ON i.org_id = x.org_id AND i.id = x.install_id
       WHERE x.org_id = b.org_id AND x.bulk_id = b.id
         AND (i.customer_id = ANY (sqlc.arg(customer_ids)::text[]) OR i.app_id = ANY (sqlc.arg(app_ids)::text[]) OR i.id = ANY (sqlc.arg(install_ids)::text[]))))
ORDER BY b.id DESC LIMIT sqlc.arg(most);

-- name: BulkItems :many
-- The items of a bulk operation on installs that the caller may see, with what
-- became of their workflows.
SELECT sqlc.embed(x), i.name AS install_name, coalesce(w.state, '')::text AS workflow_state
FROM bulk_items x
JOIN installs i ON i.org_id = x.org_id AND i.id = x.install_id
LEFT JOIN workflows w ON w.org_id = x.org_id AND w.id = x.workflow_id
WHERE x.bulk_id = ANY (sqlc.arg(bulk_ids)::text[])
  AND (sqlc.arg(everywhere)::bool OR i.customer_id = ANY (sqlc.arg(customer_ids)::text[]) OR i.app_id = ANY (sqlc.arg(app_ids)::text[]) OR i.id = ANY (sqlc.arg(install_ids)::text[]))
ORDER BY x.bulk_id, x.idx;

-- name: NextBulkItem :one
-- The first pending item behind idx, locked; one that another worker has is left to it.
SELECT * FROM bulk_items WHERE bulk_id = sqlc.arg(bulk_id) AND outcome = 'pending' AND idx > sqlc.arg(after)
ORDER BY idx LIMIT 1 FOR UPDATE SKIP LOCKED;

-- name: StartBulkItem :exec
UPDATE bulk_items SET outcome = 'started', workflow_id = sqlc.arg(workflow_id) WHERE bulk_id = sqlc.arg(bulk_id) AND install_id = sqlc.arg(install_id);

-- name: DoBulkItem :exec
UPDATE bulk_items SET outcome = 'done' WHERE bulk_id = sqlc.arg(bulk_id) AND install_id = sqlc.arg(install_id);

-- name: RefuseBulkItem :exec
UPDATE bulk_items SET outcome = 'refused', code = sqlc.arg(code), detail = sqlc.arg(detail), remedy = sqlc.narg(remedy)
WHERE bulk_id = sqlc.arg(bulk_id) AND install_id = sqlc.arg(install_id) AND outcome = 'pending';

-- name: FinishBulk :exec
-- Once nothing of it is pending.
UPDATE bulk_operations b SET finished_at = coalesce(b.finished_at, now())
WHERE b.id = sqlc.arg(id) AND NOT EXISTS (SELECT FROM bulk_items x WHERE x.org_id = b.org_id AND x.bulk_id = b.id AND x.outcome = 'pending');
