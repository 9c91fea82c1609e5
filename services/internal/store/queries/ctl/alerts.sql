-- Alerts, incidents and mutes. The system functions run in System, the rest inside
-- store.Tx of the org; what writes alerts holds the row of their install.

-- name: AlertsToStep :many
-- Those of an install that are not closed.
SELECT * FROM alerts WHERE install_id = sqlc.arg(install_id) AND state <> 'closed' ORDER BY kind, subject;

-- name: InsertAlert :exec
INSERT INTO alerts (id, org_id, install_id, kind, subject, state, text, since, cause, release_id, runner_version, hold, hold_until, opened_at, tell_at, told_at,
                    good_since, relapses, look_at, incident_id)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(install_id), sqlc.arg(kind), sqlc.arg(subject), sqlc.arg(state), sqlc.arg(text), sqlc.arg(since), sqlc.arg(cause),
        sqlc.narg(release_id), sqlc.narg(runner_version), sqlc.narg(hold), sqlc.narg(hold_until), sqlc.narg(opened_at), sqlc.narg(tell_at), sqlc.narg(told_at),
        sqlc.narg(good_since), sqlc.arg(relapses), sqlc.narg(look_at), sqlc.narg(incident_id));

-- name: MoveAlert :exec
UPDATE alerts SET state = sqlc.arg(state), text = sqlc.arg(text), since = sqlc.arg(since), cause = sqlc.arg(cause), release_id = sqlc.narg(release_id),
    runner_version = sqlc.narg(runner_version), hold = sqlc.narg(hold), hold_until = sqlc.narg(hold_until), opened_at = sqlc.narg(opened_at), tell_at = sqlc.narg(tell_at),
    told_at = sqlc.narg(told_at), good_since = sqlc.narg(good_since), relapses = sqlc.arg(relapses), look_at = sqlc.narg(look_at), incident_id = sqlc.narg(incident_id),
    closed_at = sqlc.narg(closed_at), closed_because = sqlc.narg(closed_because)
WHERE id = sqlc.arg(id) AND state <> 'closed';

-- name: DropUntoldAlert :exec
DELETE FROM alerts WHERE id = sqlc.arg(id) AND told_at IS NULL;

-- name: LockCause :exec
-- One transaction at a time decides whether a cause is an incident.
SELECT pg_advisory_xact_lock(hashtextextended('berth.incident.' || berth.current_org() || ' ' || sqlc.arg(cause)::text, 0));

-- name: OpenIncidents :many
-- The open incident of a cause, if there is one.
SELECT * FROM incidents WHERE cause = sqlc.arg(cause) AND closed_at IS NULL;

-- name: PeersOfAlert :many
-- The open alerts of a cause in other installs, the oldest of each.
SELECT a.install_id, min(a.opened_at)::timestamptz AS opened_at FROM alerts a
WHERE a.cause = sqlc.arg(cause) AND a.cause <> '' AND a.state = 'open' AND a.install_id <> sqlc.arg(install_id)
GROUP BY a.install_id ORDER BY a.install_id;

-- name: InsertIncident :exec
INSERT INTO incidents (id, org_id, kind, cause, about, release_id, runner_version, installs)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(kind), sqlc.arg(cause), sqlc.arg(about), sqlc.narg(release_id), sqlc.narg(runner_version), sqlc.arg(installs));

-- name: CloseIncident :execrows
-- Closes the open incident of a cause when none of its alerts is open any more.
UPDATE incidents i SET closed_at = sqlc.arg(now)::timestamptz
WHERE i.cause = sqlc.arg(cause) AND i.closed_at IS NULL
  AND NOT EXISTS (SELECT FROM alerts a WHERE a.org_id = i.org_id AND a.cause = i.cause AND a.cause <> '' AND a.state = 'open');

-- name: MutesInForce :many
-- Those that cover alerts of an install, or that somebody may list.
SELECT * FROM alert_mutes m WHERE m.removed_at IS NULL AND m.until > sqlc.arg(now)::timestamptz AND (m.install_id IS NULL OR m.install_id = sqlc.arg(install_id)::text);

-- name: VerdictsToAlert :many
-- The checks and probes of an install, with the release that is live in the component that
-- a probe looks at: its name is component/NAME, or begins so.
SELECT c.name, c.verdict, c.since, coalesce(r.live_release_id, '')::text AS release_id
FROM checks c
LEFT JOIN resources r ON r.org_id = c.org_id AND r.install_id = c.install_id AND r.kind = 'component' AND c.name LIKE 'component/%' AND split_part(c.name, '/', 2) = r.name
WHERE c.install_id = sqlc.arg(install_id) ORDER BY c.name;

-- name: WorkflowsToAlert :many
-- Of an install's workflows that are to change it, and of those that a customer's switch
-- starts, the last that is at work or has ended since a time; with the step that failed first.
-- Who runs an action or a script by hand sees what comes of it.
SELECT DISTINCT ON (about) CASE w.kind WHEN 'role_switch' THEN 'role switch' ELSE 'changes' END::text AS about,
       w.id, w.number, w.kind, w.state, w.ended, coalesce(w.release_id, '')::text AS release_id, w.finished_at, coalesce(f.name, '')::text AS failed_step,
       coalesce(f.superseded, false)::boolean AS superseded
FROM workflows w
LEFT JOIN LATERAL (
    SELECT s.name, coalesce(c.state = 'superseded', false) AS superseded
    FROM steps s LEFT JOIN changes c ON c.id = s.change_id
    WHERE s.workflow_id = w.id AND s.state = 'failed' ORDER BY superseded, s.idx LIMIT 1
) f ON true
WHERE w.install_id = sqlc.arg(install_id) AND NOT w.plan_only AND w.kind NOT IN ('action_run', 'run_script')
  AND (w.state IN ('queued', 'running', 'waiting') OR w.finished_at > sqlc.arg(since)::timestamptz)
ORDER BY about, w.state IN ('queued', 'running', 'waiting') DESC, w.finished_at DESC, w.number DESC;

-- name: WaitsToAlert :many
-- The steps of an install that wait for somebody, since their turn came. A freeze and a
-- pause are what the vendor wants, and who waits for another change waits for its reason.
SELECT w.number, w.kind, s.name, s.wait_reason, greatest(s.started_at, c.proposed_at, c.decided_at, w.created_at)::timestamptz AS since
FROM steps s JOIN workflows w ON w.id = s.workflow_id LEFT JOIN changes c ON c.id = s.change_id
WHERE s.install_id = sqlc.arg(install_id) AND s.state = 'waiting' AND w.state = 'waiting' AND s.wait_reason NOT IN ('lock', 'freeze', 'paused_by_vendor')
ORDER BY w.number, s.idx;

-- name: EndsToAlert :many
-- What has an end in an install: its signed settings, open enrolments of a runner that never
-- came, roles that are on, consents and overrides of changes that are not carried out, and
-- what the vendor signed of its release.
SELECT 'settings'::text AS what, ''::text AS name, v.created_at::timestamptz AS starts, v.expires_at::timestamptz AS ends
FROM settings_versions v WHERE v.install_id = sqlc.arg(install_id) AND v.version = (SELECT max(x.version) FROM settings_versions x WHERE x.install_id = sqlc.arg(install_id))
UNION ALL
SELECT 'enrolment', r.name, e.created_at, e.expires_at
FROM enrolments e JOIN runners r ON r.org_id = e.org_id AND r.id = e.runner_id
WHERE r.install_id = sqlc.arg(install_id) AND r.state = 'pending' AND e.state = 'open'
UNION ALL
SELECT 'role', s.name, s.switched_at, s.until
FROM install_roles o JOIN role_switches s ON s.org_id = o.org_id AND s.install_id = o.install_id AND s.id = o.switch_id
WHERE o.install_id = sqlc.arg(install_id) AND s.until IS NOT NULL
UNION ALL
SELECT 'consent', c.id, coalesce(n.answered_at, n.told_at), n.until
FROM consents n JOIN changes c ON c.org_id = n.org_id AND c.id = n.change_id
WHERE n.install_id = sqlc.arg(install_id) AND n.state = 'given' AND n.until IS NOT NULL AND c.state IN ('proposed', 'approved')
UNION ALL
SELECT 'override', c.id, p.created_at, p.until
FROM policy_overrides p JOIN changes c ON c.org_id = p.org_id AND c.id = p.change_id
WHERE p.install_id = sqlc.arg(install_id) AND c.state IN ('proposed', 'approved')
UNION ALL
SELECT 'statement', 'release ' || l.number, t.added_at, t.expires_at
FROM installs i JOIN releases l ON l.id = i.release_id
CROSS JOIN LATERAL (SELECT x.added_at, x.expires_at FROM release_statements x WHERE x.org_id = i.org_id AND x.release_id = i.release_id ORDER BY x.expires_at DESC LIMIT 1) t
WHERE i.id = sqlc.arg(install_id);

-- name: ChainToAlert :one
-- When the chain of an install last grew, and when the runner began the first change since
-- then that it has reported; the same time when there is none.
SELECT h.updated_at AS grown_at, coalesce((
    SELECT min(j.leased_at) FROM (
        SELECT j.leased_at, j.mutates, j.state FROM runner_jobs j WHERE j.runner_id = sqlc.arg(runner_id) ORDER BY j.id DESC LIMIT 50
    ) j WHERE j.mutates AND j.state IN ('succeeded', 'failed') AND j.leased_at > h.updated_at), h.updated_at)::timestamptz AS began_at
FROM chain_heads h WHERE h.chain = sqlc.arg(install_id);

-- name: PlannedWork :many
-- The changes of an install that run, or have ended since a time.
SELECT coalesce(r.kind, '')::text AS kind, coalesce(r.name, '')::text AS name, c.executed_at::timestamptz AS started_at, c.finished_at
FROM changes c LEFT JOIN resources r ON r.id = c.resource_id
WHERE c.install_id = sqlc.arg(install_id) AND c.executed_at IS NOT NULL AND (c.state = 'executing' OR c.finished_at > sqlc.arg(since)::timestamptz);

-- name: AlertsOverdue :many
-- Installs of all orgs that should have been looked at: berth.alerts_overdue.
SELECT o.org_id::text AS org_id, o.id::text AS id FROM berth.alerts_overdue(sqlc.arg(late_seconds)::float8, sqlc.arg(silent_seconds)::float8) o;

-- name: DropOldAlerts :one
SELECT berth.drop_old_alerts(sqlc.arg(keep_days)::int)::bigint;

-- name: AlertCounts :many
-- Open alerts of all orgs by kind.
SELECT c.kind::text AS kind, c.value::float8 AS value FROM berth.alert_counts() c;

-- name: ShowAlerts :many
-- A page of alerts that stand in the scope and match the filters, newest first; one by id.
SELECT sqlc.embed(a), i.name AS install_name, coalesce(r.number, 0)::int AS release_number
FROM alerts a JOIN installs i ON i.org_id = a.org_id AND i.id = a.install_id LEFT JOIN releases r ON r.id = a.release_id
WHERE (sqlc.arg(everywhere)::bool OR i.customer_id = ANY (sqlc.arg(customer_ids)::text[]) OR i.app_id = ANY (sqlc.arg(app_ids)::text[]) OR i.id = ANY (sqlc.arg(install_ids)::text[]))
  AND (sqlc.narg(id)::text IS NULL OR a.id = sqlc.narg(id))
  AND (sqlc.narg(install_id)::text IS NULL OR a.install_id = sqlc.narg(install_id))
  AND (sqlc.narg(incident_id)::text IS NULL OR a.incident_id = sqlc.narg(incident_id))
  AND (cardinality(sqlc.arg(states)::text[]) = 0 OR a.state = ANY (sqlc.arg(states)::text[]))
  AND (cardinality(sqlc.arg(kinds)::text[]) = 0 OR a.kind = ANY (sqlc.arg(kinds)::text[]))
  AND (sqlc.narg(after)::text IS NULL OR a.id < sqlc.narg(after))
ORDER BY a.id DESC LIMIT sqlc.arg(most);

-- name: LockAlert :one
SELECT * FROM alerts WHERE id = sqlc.arg(id) FOR UPDATE;

-- name: AcknowledgeAlert :exec
UPDATE alerts SET acknowledged_at = now(), acknowledged_by = sqlc.arg(acknowledged_by)::text, note = sqlc.arg(note)::text
WHERE id = sqlc.arg(id) AND acknowledged_at IS NULL;

-- name: ShowIncidents :many
-- A page of incidents that have an alert in the scope, newest first, with how many of their
-- alerts there and how many of these are open; one by id.
SELECT sqlc.embed(n), coalesce(r.number, 0)::int AS release_number, coalesce(p.name, '')::text AS app_name, t.alerts::int AS alerts, t.open::int AS open
FROM incidents n LEFT JOIN releases r ON r.id = n.release_id LEFT JOIN apps p ON p.id = r.app_id
CROSS JOIN LATERAL (
    SELECT count(*) AS alerts, count(*) FILTER (WHERE a.state = 'open') AS open
    FROM alerts a JOIN installs i ON i.org_id = a.org_id AND i.id = a.install_id
    WHERE a.org_id = n.org_id AND a.incident_id = n.id
      AND (sqlc.arg(everywhere)::bool OR i.customer_id = ANY (sqlc.arg(customer_ids)::text[]) OR i.app_id = ANY (sqlc.arg(app_ids)::text[]) OR i.id = ANY (sqlc.arg(install_ids)::text[]))
) t
WHERE (sqlc.arg(everywhere)::bool OR t.alerts > 0)
  AND (sqlc.narg(id)::text IS NULL OR n.id = sqlc.narg(id))
  AND (sqlc.narg(open)::bool IS NULL OR (n.closed_at IS NULL) = sqlc.narg(open))
  AND (sqlc.narg(after)::text IS NULL OR n.id < sqlc.narg(after))
ORDER BY n.id DESC LIMIT sqlc.arg(most);

-- name: InsertMute :exec
INSERT INTO alert_mutes (id, org_id, install_id, kind, subject, reason, created_by, until)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.narg(install_id), sqlc.narg(kind), sqlc.narg(subject), sqlc.arg(reason), sqlc.arg(created_by), sqlc.arg(until));

-- name: ShowMutes :many
-- A page of mutes that stand in the scope, newest first; one by id. past shows also those
-- that are over.
SELECT sqlc.embed(m), coalesce(i.name, '')::text AS install_name
FROM alert_mutes m LEFT JOIN installs i ON i.org_id = m.org_id AND i.id = m.install_id
WHERE (sqlc.arg(everywhere)::bool OR i.customer_id = ANY (sqlc.arg(customer_ids)::text[]) OR i.app_id = ANY (sqlc.arg(app_ids)::text[]) OR i.id = ANY (sqlc.arg(install_ids)::text[]))
  AND (sqlc.narg(id)::text IS NULL OR m.id = sqlc.narg(id))
  AND (sqlc.arg(past)::bool OR m.removed_at IS NULL AND m.until > now())
  AND (sqlc.narg(after)::text IS NULL OR m.id < sqlc.narg(after))
ORDER BY m.id DESC LIMIT sqlc.arg(most);

-- name: RemoveMute :execrows
UPDATE alert_mutes SET removed_at = now(), removed_by = sqlc.arg(removed_by)::text WHERE id = sqlc.arg(id) AND removed_at IS NULL;

-- name: WakeHeldInstalls :exec
-- Has the installs looked at whose alerts a mute held back that is over now.
SELECT berth.wake_install(x.install_id) FROM (
    SELECT DISTINCT a.install_id FROM alerts a
    WHERE a.state = 'held' AND a.hold = 'muted' AND (sqlc.narg(install_id)::text IS NULL OR a.install_id = sqlc.narg(install_id))
      AND (sqlc.narg(kind)::text IS NULL OR a.kind = sqlc.narg(kind))
) x;

-- name: DriftToAlert :many
-- What an install consists of, with the time of drift that is open.
SELECT r.kind, r.name, coalesce(r.live_release_id, '')::text AS release_id, coalesce(d.class, '')::text AS class, coalesce(d.opened_at, now())::timestamptz AS opened_at
FROM resources r LEFT JOIN drift_episodes d ON d.org_id = r.org_id AND d.resource_id = r.id AND d.closed_at IS NULL
WHERE r.install_id = sqlc.arg(install_id) AND r.state <> 'absent' AND r.kind IN ('sandbox', 'component') ORDER BY r.kind, r.name;

-- name: RemediationsToAlert :many
-- The newest remediation of each check of an install that has not ended.
SELECT DISTINCT ON (check_name) check_name, action, state, attempts, attempts_of, reverted FROM remediations
WHERE install_id = sqlc.arg(install_id) AND ended_at IS NULL ORDER BY check_name, id DESC;

-- name: GetObjectiveLook :one
SELECT * FROM objective_looks WHERE install_id = sqlc.arg(install_id);

-- name: PutObjectiveLook :exec
INSERT INTO objective_looks (org_id, install_id, objective, unhealthy_seconds, unknown_seconds, looked_at)
VALUES (berth.current_org(), sqlc.arg(install_id), sqlc.arg(objective), sqlc.arg(unhealthy_seconds), sqlc.arg(unknown_seconds), sqlc.arg(looked_at))
ON CONFLICT (org_id, install_id) DO UPDATE SET objective = excluded.objective, unhealthy_seconds = excluded.unhealthy_seconds,
    unknown_seconds = excluded.unknown_seconds, looked_at = excluded.looked_at;
