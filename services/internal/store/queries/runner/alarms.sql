-- Alarms: raised by runner-api, recorded in the org's chain by ctl-api.

-- name: RaiseAlarm :execrows
-- The first time that it is about this subject; none while that one is open.
INSERT INTO alarms (id, org_id, runner_id, kind, subject, detail)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(runner_id)::text, sqlc.arg(kind), sqlc.arg(subject), sqlc.arg(detail))
ON CONFLICT DO NOTHING;

-- name: WakeOrg :exec
SELECT berth.wake_org(sqlc.arg(org_id)::text);
