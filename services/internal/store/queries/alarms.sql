-- Alarms: raised by runner-api, recorded in the org's chain by ctl-api.

-- name: RaiseAlarm :execrows
-- The first time that it is about this subject; none later.
INSERT INTO alarms (id, org_id, runner_id, kind, subject, detail)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(runner_id), sqlc.arg(kind), sqlc.arg(subject), sqlc.arg(detail))
ON CONFLICT DO NOTHING;

-- name: WakeOrg :exec
SELECT berth.wake_org(sqlc.arg(org_id)::text);

-- name: UnrecordedAlarms :many
-- The oldest alarms of the install's runners that are in no chain yet, locked;
-- of the org's Build Runners when there is no install.
SELECT a.id, a.runner_id, a.kind, a.subject, a.detail, a.created_at
FROM alarms a JOIN runners r ON r.org_id = a.org_id AND r.id = a.runner_id
WHERE a.recorded_at IS NULL AND r.install_id IS NOT DISTINCT FROM sqlc.narg(install_id)
ORDER BY a.created_at, a.id LIMIT sqlc.arg(most)
FOR UPDATE OF a;

-- name: MarkAlarmsRecorded :exec
UPDATE alarms SET recorded_at = now() WHERE id = ANY (sqlc.arg(ids)::text[]);
