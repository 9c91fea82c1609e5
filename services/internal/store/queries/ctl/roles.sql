-- What is known of the roles that customers switch; all inside store.Tx of the org.

-- name: RolesOfInstall :many
-- The roles that an install can have switched on, by name, each with the switch by which
-- it is on, if it is, and with the time and the person of the last one.
SELECT sqlc.embed(r), s.switched_at AS on_since, s.until AS on_until, coalesce(s.switched_by, '')::text AS on_by, coalesce(s.reason, '')::text AS on_reason,
       l.switched_at AS last_at, coalesce(l.switched_by, '')::text AS last_by
FROM install_roles r
LEFT JOIN role_switches s ON s.org_id = r.org_id AND s.install_id = r.install_id AND s.id = r.switch_id
LEFT JOIN LATERAL (
    SELECT x.switched_at, x.switched_by FROM role_switches x WHERE x.org_id = r.org_id AND x.install_id = r.install_id AND x.role = r.written ORDER BY x.n DESC LIMIT 1
) l ON true
WHERE r.install_id = sqlc.arg(install_id) ORDER BY r.name, r.written;

-- name: OpenRoleSwitches :many
-- The switches whose actions were not started yet, in the order of the customer's.
SELECT * FROM role_switches WHERE install_id = sqlc.arg(install_id) AND handled_at IS NULL ORDER BY n;

-- name: RoleSwitchHandled :exec
-- What a switch starts was started, or there was nothing to start.
UPDATE role_switches SET handled_at = now(), workflow_id = sqlc.narg(workflow_id) WHERE install_id = sqlc.arg(install_id) AND id = sqlc.arg(id);
