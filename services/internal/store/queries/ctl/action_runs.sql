-- Runs of actions and the verdicts of checks, as ctl-api sees them. All run
-- inside store.Tx of the org.

-- name: InsertActionRun :exec
INSERT INTO action_runs (id, org_id, install_id, action, trigger, key, change_id, workflow_id, runner_id, inputs, created_by)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(install_id), sqlc.arg(action), sqlc.arg(trigger), sqlc.arg(id)::text,
        sqlc.narg(change_id), sqlc.narg(workflow_id), sqlc.narg(runner_id), sqlc.arg(inputs), sqlc.arg(created_by));

-- name: SettleActionRun :exec
-- What came of a run that was a job.
UPDATE action_runs SET state = sqlc.arg(state), exit_code = sqlc.narg(exit_code), error = sqlc.narg(error),
    outputs = sqlc.arg(outputs), stream_id = sqlc.narg(stream_id), started_at = coalesce(sqlc.narg(started_at), started_at),
    finished_at = coalesce(sqlc.narg(finished_at), now()), reported_at = now()
WHERE id = sqlc.arg(id) AND state IN ('queued', 'running');

-- name: ActionRunOfChange :one
SELECT * FROM action_runs WHERE change_id = sqlc.arg(change_id)::text;

-- name: ListActionRuns :many
-- A page, newest first, behind the id `after`; one by id.
SELECT sqlc.embed(a), i.name AS install_name FROM action_runs a JOIN installs i ON i.id = a.install_id
WHERE (sqlc.narg(id)::text IS NULL OR a.id = sqlc.narg(id))
  AND (sqlc.narg(install_id)::text IS NULL OR a.install_id = sqlc.narg(install_id))
  AND (sqlc.narg(action)::text IS NULL OR a.action = sqlc.narg(action))
  AND (sqlc.narg(after)::text IS NULL OR a.id < sqlc.narg(after))
ORDER BY a.id DESC LIMIT sqlc.arg(most);

-- name: RecentOutcomes :many
-- The last ended runs of an action, newest first, by when they were due. unknown: nothing was
-- wrong, and of something nobody can tell (jobspec.FindingsOutput of a probe).
SELECT id, state, (state = 'succeeded' AND (action LIKE 'component/%' OR action LIKE 'probe.%') AND jsonb_path_exists(outputs, '$.findings[*] ? (@.unknown == true)'))::bool AS unknown, coalesce(scheduled_at, created_at)::timestamptz AS due_at, coalesce(finished_at, created_at)::timestamptz AS ended_at FROM action_runs
WHERE install_id = sqlc.arg(install_id) AND action = sqlc.arg(action) AND state IN ('succeeded', 'failed')
ORDER BY coalesce(scheduled_at, created_at) DESC LIMIT sqlc.arg(most);

-- name: GetCheck :one
SELECT * FROM checks WHERE install_id = sqlc.arg(install_id) AND name = sqlc.arg(name);

-- name: ListChecks :many
-- Each check with what its newest outcome said.
SELECT sqlc.embed(k), coalesce(n.error, '')::text AS error, coalesce(n.findings, 'null')::jsonb AS findings
FROM checks k LEFT JOIN LATERAL (
    SELECT a.error, CASE WHEN a.action LIKE 'component/%' OR a.action LIKE 'probe.%' THEN a.outputs->'findings' END AS findings FROM action_runs a
    WHERE a.install_id = k.install_id AND a.action = k.name AND a.state IN ('succeeded', 'failed')
    ORDER BY coalesce(a.scheduled_at, a.created_at) DESC LIMIT 1
) n ON true
WHERE k.install_id = sqlc.arg(install_id) ORDER BY k.name;

-- name: DropChecks :exec
-- Forgets the checks of an install that are not among those that there are, and what they saw.
WITH gone AS (
    DELETE FROM certificates c WHERE c.install_id = sqlc.arg(install_id) AND NOT c.check_name = ANY(sqlc.arg(present)::text[])
)
DELETE FROM checks k WHERE k.install_id = sqlc.arg(install_id) AND NOT k.name = ANY(sqlc.arg(present)::text[]);

-- name: PutCheck :exec
INSERT INTO checks (org_id, install_id, name, verdict, since, recent, silent_at)
VALUES (berth.current_org(), sqlc.arg(install_id), sqlc.arg(name), sqlc.arg(verdict), sqlc.arg(since), sqlc.arg(recent), sqlc.narg(silent_at))
ON CONFLICT (org_id, install_id, name) DO UPDATE SET verdict = excluded.verdict, since = excluded.since,
    recent = excluded.recent, silent_at = excluded.silent_at, updated_at = now();

-- name: GateChecks :many
-- Checks of an install by their names, each with the newest outcome that ended.
-- ended_at is the epoch without any, and never after the report: a runner's clock may be ahead.
SELECT k.name, k.verdict, k.since, coalesce(n.ended_at, 'epoch')::timestamptz AS ended_at, coalesce(n.good, false)::bool AS good, coalesce(n.error, '')::text AS error
FROM checks k LEFT JOIN LATERAL (
    SELECT least(coalesce(a.finished_at, a.created_at), a.reported_at)::timestamptz AS ended_at, a.state = 'succeeded' AS good, a.error FROM action_runs a
    WHERE a.install_id = k.install_id AND a.action = k.name AND a.state IN ('succeeded', 'failed')
    ORDER BY coalesce(a.scheduled_at, a.created_at) DESC LIMIT 1
) n ON true
WHERE k.install_id = sqlc.arg(install_id) AND k.name = ANY(sqlc.arg(names)::text[]);

-- name: OpenGate :one
-- The workflow of an install that waits until what it deployed is healthy, if one does.
SELECT w.* FROM workflows w JOIN steps s ON s.workflow_id = w.id
WHERE w.install_id = sqlc.arg(install_id) AND s.install_id = w.install_id AND s.kind = 'gate' AND s.state IN ('running', 'waiting')
  AND w.state IN ('running', 'waiting')
ORDER BY w.number DESC LIMIT 1;
