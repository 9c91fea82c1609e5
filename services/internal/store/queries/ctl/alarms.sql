-- Alarms: raised by runner-api, recorded in the org's chain by ctl-api.

-- name: RaiseAlarm :execrows
-- The first time that it is about this subject; none while that one is open.
INSERT INTO alarms (id, org_id, runner_id, kind, subject, detail)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(runner_id)::text, sqlc.arg(kind), sqlc.arg(subject), sqlc.arg(detail))
ON CONFLICT DO NOTHING;

-- name: RaiseWebhookAlarm :execrows
-- An alarm that is no runner's; none while one is open about the same webhook.
INSERT INTO alarms (id, org_id, kind, subject, detail)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(kind), sqlc.arg(subject), sqlc.arg(detail))
ON CONFLICT DO NOTHING;

-- name: UnrecordedAlarms :many
-- The oldest alarms of the install's runners that are in no chain yet, locked;
-- of the org's Build Runners and webhooks when there is no install.
SELECT a.id, coalesce(a.runner_id, 'webhooks')::text AS runner_id, a.kind, a.subject, a.detail, a.created_at
FROM alarms a LEFT JOIN runners r ON r.org_id = a.org_id AND r.id = a.runner_id
WHERE a.recorded_at IS NULL AND r.install_id IS NOT DISTINCT FROM sqlc.narg(install_id)
ORDER BY a.created_at, a.id LIMIT sqlc.arg(most)
FOR UPDATE OF a;

-- name: MarkAlarmsRecorded :exec
UPDATE alarms SET recorded_at = now() WHERE id = ANY (sqlc.arg(ids)::text[]);

-- name: ShowAlarms :many
-- Alarms with the install that each is about, newest first; one by id, those of
-- an install, or all with NULL. What says whom is sealed to is none.
SELECT a.id, coalesce(a.runner_id, '')::text AS runner_id, a.kind, a.subject, a.detail, a.created_at, a.acknowledged_at, a.acknowledged_by, a.acknowledgement,
       r.install_id, coalesce(i.name, '')::text AS install_name
FROM alarms a
LEFT JOIN runners r ON r.org_id = a.org_id AND r.id = a.runner_id
LEFT JOIN installs i ON i.org_id = r.org_id AND i.id = r.install_id
WHERE a.kind <> 'recipient_trusted'
  AND (sqlc.narg(id)::text IS NULL OR a.id = sqlc.narg(id))
  AND (sqlc.narg(install_id)::text IS NULL OR r.install_id = sqlc.narg(install_id))
  AND (sqlc.arg(settled)::bool OR a.acknowledged_at IS NULL)
  AND (sqlc.narg(after)::text IS NULL OR a.id < sqlc.narg(after))
ORDER BY a.id DESC LIMIT sqlc.arg(most);

-- name: AcknowledgeAlarm :execrows
UPDATE alarms SET acknowledged_at = now(), acknowledged_by = sqlc.arg(acknowledged_by)::text, acknowledgement = sqlc.arg(acknowledgement)::text
WHERE id = sqlc.arg(id) AND acknowledged_at IS NULL AND kind <> 'recipient_trusted';
