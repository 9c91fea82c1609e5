-- Installs, as people see them.

-- name: InsertInstall :one
INSERT INTO installs (id, org_id, customer_id, app_id, name, stack_kind, approval_option, labels, inputs_version, created_by, rehearsal)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(customer_id), sqlc.arg(app_id), sqlc.arg(name), sqlc.arg(stack_kind),
        sqlc.arg(approval_option), sqlc.arg(labels), sqlc.arg(inputs_version), sqlc.arg(created_by), sqlc.narg(rehearsal))
RETURNING *;

-- name: FindInstall :one
-- An install by id or name; one that is forgotten only by id.
SELECT * FROM installs
WHERE id = sqlc.arg(ref) OR (name = sqlc.arg(ref) AND forgotten_at IS NULL)
ORDER BY id = sqlc.arg(ref) DESC LIMIT 1;

-- name: LockInstallRow :one
-- Excludes others who lock it, but not those who only insert what refers to it.
SELECT * FROM installs WHERE id = sqlc.arg(id) FOR NO KEY UPDATE;

-- name: ShowInstalls :many
-- Installs with the names around them, in the order of sort_key, which the next
-- page begins behind; a filter that is empty lets all pass. sort is name, health
-- (unhealthy first), expiry (the proposal that ends soonest first) or newest. The three lists are the scopes of the caller's grants; all NULL for a
-- caller who sees the whole org.
SELECT sqlc.embed(i), a.name AS app_name, c.name AS customer_name, r.number AS release_number,
       coalesce((SELECT w.id FROM workflows w WHERE w.org_id = i.org_id AND w.install_id = i.id AND w.state IN ('queued', 'running', 'waiting')
                 ORDER BY w.number DESC LIMIT 1), '')::text AS workflow_id,
       h.verdict AS health, k.sort_key,
       CASE WHEN i.approval_hours_own THEN i.approval_hours ELSE coalesce((SELECT p.hours FROM approval_policies p WHERE p.org_id = i.org_id AND p.about = i.app_id), i.approval_hours) END::int AS hours_in_force,
       (SELECT count(*) FROM alarms x JOIN runners n ON n.org_id = x.org_id AND n.id = x.runner_id
        WHERE n.org_id = i.org_id AND n.install_id = i.id AND x.acknowledged_at IS NULL AND x.kind <> 'recipient_trusted')::int AS open_alarms,
       (SELECT count(*) FROM alerts x WHERE x.org_id = i.org_id AND x.install_id = i.id AND x.state = 'open')::int AS open_alerts,
       (SELECT count(*) FROM resources d WHERE d.org_id = i.org_id AND d.install_id = i.id AND d.drift = 'drifted')::int AS drifted
FROM installs i
JOIN apps a ON a.org_id = i.org_id AND a.id = i.app_id
JOIN customers c ON c.org_id = i.org_id AND c.id = i.customer_id
LEFT JOIN releases r ON r.org_id = i.org_id AND r.id = i.release_id
-- The worst verdict of its checks; healthy only when one says so.
CROSS JOIN LATERAL (SELECT coalesce((SELECT CASE WHEN bool_or(k.verdict = 'unhealthy') THEN 'unhealthy' WHEN bool_and(k.verdict = 'healthy') THEN 'healthy' ELSE 'unknown' END
                                     FROM checks k WHERE k.org_id = i.org_id AND k.install_id = i.id), 'unknown')::text AS verdict) h
CROSS JOIN LATERAL (SELECT coalesce(CASE sqlc.arg(sort)::text
    WHEN 'health' THEN CASE h.verdict WHEN 'unhealthy' THEN '0' WHEN 'unknown' THEN '1' ELSE '2' END || i.name
    WHEN 'expiry' THEN coalesce((SELECT to_char(min(p.wait_deadline) AT TIME ZONE 'UTC', 'YYYYMMDDHH24MISS') FROM changes p
                                 WHERE p.org_id = i.org_id AND p.install_id = i.id AND p.state = 'proposed'), '9') || i.name
    WHEN 'newest' THEN lpad((9999999999999999 - (extract(epoch FROM i.created_at) * 1000000)::bigint)::text, 16, '0') || i.name
    ELSE i.name END, '')::text AS sort_key) k
WHERE (sqlc.arg(id)::text = '' OR i.id = sqlc.arg(id))
  AND (sqlc.arg(id)::text <> '' OR i.forgotten_at IS NULL)
  AND (sqlc.narg(ids)::text[] IS NULL OR i.id = ANY (sqlc.narg(ids)::text[]))
  -- What waits is a workflow or one of its steps; finished ones keep the reason that they had.
  AND (sqlc.arg(waiting)::text = ''
       OR EXISTS (SELECT FROM workflows w WHERE w.org_id = i.org_id AND w.install_id = i.id AND w.state IN ('queued', 'running', 'waiting')
                  AND w.state = 'waiting' AND (sqlc.arg(waiting) = 'any' OR w.wait_reason = sqlc.arg(waiting)))
       OR EXISTS (SELECT FROM steps s WHERE s.org_id = i.org_id AND s.install_id = i.id AND s.state = 'waiting'
                  AND (sqlc.arg(waiting) = 'any' OR s.wait_reason = sqlc.arg(waiting))))
  AND (sqlc.arg(expiring_seconds)::float8 = 0
       OR EXISTS (SELECT FROM changes p WHERE p.org_id = i.org_id AND p.install_id = i.id AND p.state = 'proposed'
                  AND p.wait_deadline <= now() + make_interval(secs => sqlc.arg(expiring_seconds))))
  AND (sqlc.narg(paused)::bool IS NULL OR sqlc.narg(paused)::bool = (i.paused_at IS NOT NULL))
  AND (sqlc.arg(app_id)::text = '' OR i.app_id = sqlc.arg(app_id))
  AND (sqlc.arg(customer_id)::text = '' OR i.customer_id = sqlc.arg(customer_id))
  AND (sqlc.arg(state)::text = '' OR sqlc.arg(state) = CASE WHEN i.state = 'live' AND i.rehearsal IS NOT NULL THEN 'rehearsed' ELSE i.state END)
  AND i.labels @> sqlc.arg(labels)::jsonb
  AND (sqlc.arg(health)::text = '' OR h.verdict = sqlc.arg(health))
  -- As FindReleaseOfApp finds the newest one.
  AND (sqlc.narg(behind)::bool IS NULL OR i.release_id IS NOT NULL AND sqlc.narg(behind)::bool = (i.release_id <> (
       SELECT n.id FROM releases n JOIN configs f ON f.org_id = n.org_id AND f.id = n.config_id
       WHERE n.org_id = i.org_id AND n.app_id = i.app_id ORDER BY f.number DESC, n.number DESC LIMIT 1)))
  AND (sqlc.arg(everywhere)::bool OR i.customer_id = ANY (sqlc.arg(customer_ids)::text[]) OR i.app_id = ANY (sqlc.arg(app_ids)::text[]) OR i.id = ANY (sqlc.arg(install_ids)::text[]))
  AND k.sort_key > sqlc.arg(after)::text
ORDER BY sort_key, i.id LIMIT sqlc.arg(most);

-- name: UpdateInstallSettings :exec
-- The hours stay when none are given, and so do the objective and the hold; 0 takes them away.
UPDATE installs SET approval_option = sqlc.arg(approval_option), labels = sqlc.arg(labels), approval_hours = coalesce(sqlc.narg(approval_hours), approval_hours),
    approval_hours_own = coalesce(sqlc.narg(approval_hours_own), approval_hours_own),
    health_objective = nullif(coalesce(sqlc.narg(health_objective)::float8, health_objective), 0),
    health_hold_seconds = nullif(coalesce(sqlc.narg(health_hold_seconds)::int, health_hold_seconds), 0) WHERE id = sqlc.arg(id);

-- name: SetInstallToggles :exec
-- Toggles that are others than before; those who deploy all of it take them.
UPDATE installs SET toggles = sqlc.arg(toggles), toggles_version = toggles_version + 1 WHERE id = sqlc.arg(id);

-- name: ForgetInstall :exec
UPDATE installs SET state = 'forgotten', forgotten_at = now() WHERE id = sqlc.arg(id);

-- name: CountOpenWorkflows :one
SELECT count(*) FROM workflows WHERE install_id = sqlc.arg(install_id) AND state IN ('queued', 'running', 'waiting');

-- name: InstallsOfApp :many
-- The installs of an app that something may be deployed to, by name, with the
-- number of the release that they stand on; 0 for none.
SELECT i.id, i.name, i.toggles, coalesce(i.release_id, '')::text AS release_id, coalesce(r.number, 0)::int AS release_number
FROM installs i LEFT JOIN releases r ON r.org_id = i.org_id AND r.id = i.release_id
WHERE i.app_id = sqlc.arg(app_id) AND i.forgotten_at IS NULL AND i.state NOT IN ('deprovisioning', 'deprovisioned')
ORDER BY i.name, i.id LIMIT sqlc.arg(most);

-- name: CountInstallsToDeploy :one
-- As InstallsOfApp has them.
SELECT count(*) FROM installs
WHERE app_id = sqlc.arg(app_id) AND forgotten_at IS NULL AND state NOT IN ('deprovisioning', 'deprovisioned');

-- name: LockInstallsNamed :many
-- Locks the installs of these names, whichever app they are of, in an order that is the same for all.
SELECT id FROM installs WHERE name = ANY (sqlc.arg(names)::text[]) AND forgotten_at IS NULL ORDER BY id FOR NO KEY UPDATE;

-- name: InstallsForSync :many
-- Every install of an app, and those of other apps that have one of the names,
-- with the inputs in force.
SELECT sqlc.embed(i), a.name AS app_name, c.name AS customer_name, coalesce(n.values, '{}')::jsonb AS input_values, n.sealed AS sealed_inputs,
       coalesce(n.overrides, '{}')::jsonb AS overrides
FROM installs i
JOIN apps a ON a.org_id = i.org_id AND a.id = i.app_id
JOIN customers c ON c.org_id = i.org_id AND c.id = i.customer_id
LEFT JOIN install_inputs n ON n.org_id = i.org_id AND n.install_id = i.id AND n.version = i.inputs_version
WHERE i.forgotten_at IS NULL AND (i.app_id = sqlc.arg(app_id) OR i.name = ANY (sqlc.arg(names)::text[]))
ORDER BY i.name;
