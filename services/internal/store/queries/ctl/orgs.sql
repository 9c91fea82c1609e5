-- Orgs: the vendor's tenant of the present transaction.

-- name: InsertOrg :one
INSERT INTO orgs (org_id, name) VALUES (berth.current_org(), sqlc.arg(name))
RETURNING *;

-- name: GetOrg :one
-- The org of this transaction.
SELECT * FROM orgs WHERE org_id = berth.current_org();

-- name: AllOrgIDs :one
-- The ids of all orgs, for the bootstrap and for looking around after a start.
SELECT berth.open_work('org')::text[] AS ids;

-- name: OrgOfObject :one
-- The org that an id belongs to; empty when there is no such id.
SELECT coalesce(berth.org_of(sqlc.arg(object_id)::text), '')::text AS org_id;
