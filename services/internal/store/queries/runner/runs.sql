-- Runs that a runner started by itself and reports.

-- name: RunnerKnowsRun :one
-- Whether the run was reported before, or any settings that were good at its
-- time schedule a thing of this name, or name it as a remedy. Their payload is what was signed; runners
-- never write here.
SELECT (EXISTS (SELECT 1 FROM action_runs r WHERE r.install_id = sqlc.arg(install_id) AND r.key = sqlc.arg(key))
    OR EXISTS (
        SELECT 1 FROM settings_versions v
        CROSS JOIN LATERAL json_array_elements(convert_from(decode(v.envelope ->> 'payload', 'base64'), 'UTF8')::json -> 'schedule') AS s(item)
        WHERE v.install_id = sqlc.arg(install_id) AND v.expires_at > sqlc.arg(scheduled_at)::timestamptz
          AND (s.item #>> '{action,name}' = sqlc.arg(action)::text
               OR sqlc.arg(probe_prefix)::text || (s.item #>> '{probe,resource,name}') = sqlc.arg(action)::text))
    OR EXISTS (
        SELECT 1 FROM settings_versions v
        CROSS JOIN LATERAL json_array_elements(convert_from(decode(v.envelope ->> 'payload', 'base64'), 'UTF8')::json -> 'remedies') AS s(item)
        WHERE sqlc.narg(remediation_id)::text IS NOT NULL AND v.install_id = sqlc.arg(install_id) AND v.expires_at > sqlc.arg(scheduled_at)::timestamptz
          AND s.item #>> '{action,name}' = sqlc.arg(action)::text)
    OR EXISTS (
        SELECT 1 FROM settings_versions v
        CROSS JOIN LATERAL json_array_elements(coalesce(convert_from(decode(v.envelope ->> 'payload', 'base64'), 'UTF8')::json -> 'surveys', '[]')) AS s(item)
        WHERE v.install_id = sqlc.arg(install_id) AND v.expires_at > sqlc.arg(scheduled_at)::timestamptz
          AND s.item #>> '{probe,resource,kind}' = sqlc.arg(drift_kind)::text AND s.item #>> '{probe,resource,name}' = sqlc.arg(drift_name)::text))::boolean AS known;

-- name: RunnerAddRun :exec
-- The first report of a run makes it; its key is action and scheduled time, and the
-- remediation that it is an attempt of.
INSERT INTO action_runs (id, org_id, install_id, action, trigger, key, scheduled_at, runner_id, state, created_by, remediation_id, remediation_attempt)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(install_id), sqlc.arg(action),
        CASE WHEN sqlc.narg(remediation_id)::text IS NULL THEN 'cron' ELSE 'remediation' END, sqlc.arg(key), sqlc.arg(scheduled_at)::timestamptz,
        sqlc.arg(runner_id), 'queued', sqlc.arg(created_by), sqlc.narg(remediation_id), sqlc.narg(remediation_attempt)::int)
ON CONFLICT (org_id, install_id, key) DO NOTHING;

-- name: RunnerRunByKey :one
SELECT id, state, exit_code, coalesce(error, '')::text AS error, started_at, finished_at, stream_id
FROM action_runs WHERE install_id = sqlc.arg(install_id) AND key = sqlc.arg(key)
FOR UPDATE;

-- name: RunnerReportRun :exec
UPDATE action_runs
SET state = sqlc.arg(state), exit_code = sqlc.narg(exit_code), outputs = sqlc.arg(outputs), error = sqlc.narg(error),
    started_at = coalesce(sqlc.narg(started_at), started_at), finished_at = sqlc.narg(finished_at),
    runner_id = sqlc.arg(runner_id), reported_at = now()
WHERE id = sqlc.arg(id);

-- name: RunnerCloseRunStreams :exec
-- The machine is gone: no line of the runs that it started will come any more.
UPDATE log_streams SET state = 'closed', finished_at = now()
WHERE state = 'open' AND run_id IN (SELECT r.id FROM action_runs r WHERE r.runner_id = sqlc.arg(runner_id)::text AND r.stream_id IS NOT NULL);

-- name: RunnerSetRunStream :exec
-- Where the log of this run goes.
UPDATE action_runs SET stream_id = sqlc.arg(stream_id)::text WHERE id = sqlc.arg(id);
