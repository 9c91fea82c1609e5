-- What runners tell of roles that the customer switches; all inside store.Tx of the org.

-- name: RunnerPutRole :execrows
-- A role as it stands. No row is touched that says so already.
INSERT INTO install_roles (org_id, install_id, written, name, known, kind, display_name, description, switch_id)
VALUES (berth.current_org(), sqlc.arg(install_id), sqlc.arg(written), sqlc.arg(name), sqlc.arg(known), sqlc.arg(kind), coalesce(sqlc.narg(display_name)::text, ''), coalesce(sqlc.narg(description)::text, ''), sqlc.narg(switch_id))
ON CONFLICT (org_id, install_id, written) DO UPDATE
SET name = excluded.name, known = excluded.known, kind = excluded.kind, display_name = excluded.display_name, description = excluded.description, switch_id = excluded.switch_id
WHERE (install_roles.name, install_roles.known, install_roles.kind, install_roles.display_name, install_roles.description, install_roles.switch_id)
   IS DISTINCT FROM (excluded.name, excluded.known, excluded.kind, excluded.display_name, excluded.description, excluded.switch_id);

-- name: RunnerHasRoles :execrows
-- The release has only the named ones.
DELETE FROM install_roles WHERE install_id = sqlc.arg(install_id) AND NOT written = ANY (sqlc.arg(written)::text[]);

-- name: RunnerSwitchedRole :execrows
-- A switch counts once, also when it is reported again. One from a clock that is ahead gets the time of now.
INSERT INTO role_switches (org_id, install_id, id, role, name, enabled, switched_at, until, switched_by, reason)
VALUES (berth.current_org(), sqlc.arg(install_id), sqlc.arg(id), sqlc.arg(role), sqlc.arg(name), sqlc.arg(enabled), least(sqlc.arg(switched_at)::timestamptz, now()), sqlc.narg(until), sqlc.arg(switched_by), coalesce(sqlc.narg(reason)::text, ''))
ON CONFLICT (org_id, install_id, id) DO NOTHING;
