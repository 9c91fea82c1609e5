-- What is known of the roles that customers switch; all inside store.Tx of the org.

-- name: RolesOfInstall :many
-- The roles that an install can have switched on, by name, each with the last time that it
-- was switched.
SELECT sqlc.embed(r), l.switched_at, l.until, coalesce(l.switched_by, '')::text AS switched_by, coalesce(l.reason, '')::text AS reason
FROM install_roles r
LEFT JOIN role_switches l ON l.org_id = r.org_id AND l.install_id = r.install_id AND l.id = (
    SELECT x.id FROM role_switches x WHERE x.org_id = r.org_id AND x.install_id = r.install_id AND x.role = r.written ORDER BY x.n DESC LIMIT 1)
WHERE r.install_id = sqlc.arg(install_id) ORDER BY r.name, r.written;

-- name: OpenRoleSwitches :many
-- The switches whose actions were not started yet, in the order of the customer's.
SELECT * FROM role_switches WHERE install_id = sqlc.arg(install_id) AND handled_at IS NULL ORDER BY n;

-- name: RoleSwitchHandled :exec
-- What a switch starts was started, or there was nothing to start.
UPDATE role_switches SET handled_at = now(), workflow_id = sqlc.narg(workflow_id) WHERE install_id = sqlc.arg(install_id) AND id = sqlc.arg(id);
