-- One look at a workflow before it moves, as ctl-api makes it under the workflow's
-- row: LockWorkflow, then these. All run inside store.Tx of the org.

-- name: InstallToMove :one
-- What flow.Next needs of a workflow's install: the state of its newest stack, its
-- runner (the one that is not revoked, else the last), who holds its
-- resources (both lists in the same order), which of the secrets that it needs have
-- no value, and whether a policy or a freeze says something about its changes.
SELECT sqlc.embed(i),
       coalesce((SELECT k.state FROM stack_versions k WHERE k.install_id = i.id ORDER BY k.version DESC LIMIT 1), '')::text AS stack_state,
       coalesce(r.id, '')::text AS runner_id, coalesce(r.state, '')::text AS runner_state, r.public_key AS runner_key,
       coalesce((SELECT b.id FROM resources b WHERE b.install_id = i.id AND b.kind = 'sandbox' LIMIT 1), '')::text AS sandbox_id,
       array(SELECT l.id FROM resources l WHERE l.install_id = i.id AND l.locked_by IS NOT NULL ORDER BY l.id)::text[] AS held,
       array(SELECT l.locked_by FROM resources l WHERE l.install_id = i.id AND l.locked_by IS NOT NULL ORDER BY l.id)::text[] AS holders,
       array(SELECT x.name FROM install_secrets x WHERE x.install_id = i.id AND x.needed AND NOT x.present ORDER BY x.name)::text[] AS missing_secrets,
       (EXISTS (SELECT FROM approval_policies p WHERE p.about IN (i.id, i.app_id))
        OR EXISTS (SELECT FROM freezes f WHERE f.removed_at IS NULL AND (f.install_id = i.id OR f.app_id = i.app_id)))::boolean AS governed
FROM installs i
LEFT JOIN LATERAL (
    SELECT n.id, n.state, n.public_key FROM runners n WHERE n.install_id = i.id ORDER BY n.state = 'revoked', n.id DESC LIMIT 1
) r ON true
WHERE i.id = sqlc.arg(install_id);

-- name: StepsToMove :many
-- The steps of a workflow, all or only one, each with what Next needs of the change that it is at,
-- without its bulk, and with how its changes ended since its last retry by a
-- person: those whose runner's host ended are counted as that alone.
-- Those changes are read once and first: a planner without statistics would read them
-- for each pair of steps.
WITH ended AS MATERIALIZED (
    SELECT x.step_id, x.state, x.created_at, x.result->>'reason' AS reason
    FROM changes x WHERE x.workflow_id = sqlc.arg(workflow_id) AND x.state IN ('failed', 'stale', 'uncertain')
      AND (sqlc.narg(step_id)::text IS NULL OR x.step_id = sqlc.narg(step_id))
)
SELECT sqlc.embed(s),
       coalesce(c.state, '')::text AS change_state, c.created_at AS change_made_at, c.wait_deadline AS change_deadline,
       coalesce(c.effect_digest, '')::text AS effect_digest, coalesce(c.approved_effect_digest, '')::text AS approved_digest,
       coalesce(c.plan_job_id, '')::text AS plan_job_id, coalesce(c.apply_job_id, '')::text AS apply_job_id,
       coalesce(c.error, '')::text AS change_error, coalesce(c.remedy, '')::text AS change_remedy, coalesce(c.denied_by, '')::text AS denied_by, coalesce(c.denied_then, '')::text AS denied_then,
       coalesce(k.state, '')::text AS consent, coalesce(k.why, '')::text AS consent_why, coalesce(array_to_string(k.answered_by, ', '), '')::text AS consent_by,
       n.failed::int AS failed, n.stale::int AS stale, n.uncertain::int AS uncertain, n.host_ended::int AS host_ended
FROM steps s
LEFT JOIN changes c ON c.id = s.change_id AND c.workflow_id = s.workflow_id AND c.workflow_id = sqlc.arg(workflow_id)
LEFT JOIN consents k ON k.change_id = c.id AND k.effect_digest = c.effect_digest
LEFT JOIN LATERAL (
    SELECT count(*) FILTER (WHERE e.state = 'failed') AS failed,
           count(*) FILTER (WHERE e.state = 'stale' AND e.reason IS DISTINCT FROM 'host_ended') AS stale,
           count(*) FILTER (WHERE e.state = 'uncertain' AND e.reason IS DISTINCT FROM 'host_ended') AS uncertain,
           count(*) FILTER (WHERE e.state <> 'failed' AND e.reason = 'host_ended') AS host_ended
    FROM ended e WHERE e.step_id = s.id AND e.created_at > coalesce(s.retried_at, '-infinity')
) n ON true
WHERE s.workflow_id = sqlc.arg(workflow_id) AND (sqlc.narg(step_id)::text IS NULL OR s.id = sqlc.narg(step_id)) ORDER BY s.idx;

-- name: JobsToMove :many
-- What flow.Next needs of the jobs, oldest first: those of steps that have not ended, or of only one.
-- A step that is retried has not ended any more. The bulk of a result is unpacked once. The steps are
-- read once and first: a planner without statistics would read them for each job.
WITH open AS MATERIALIZED (
    SELECT s.id FROM steps s WHERE s.workflow_id = sqlc.arg(workflow_id) AND s.state IN ('pending', 'running', 'waiting')
      AND (sqlc.narg(step_id)::text IS NULL OR s.id = sqlc.narg(step_id))
)
SELECT j.id, j.change_id, j.step_id, j.state, j.queued_at,
       coalesce(j.ended->>'outcome', '')::text AS outcome,
       coalesce(j.ended->>'reason', '')::text AS reason,
       coalesce((j.ended->>'no_change')::boolean, false)::boolean AS no_change,
       coalesce(j.error, j.ended->>'error', '')::text AS error,
       coalesce(j.ended->>'remedy', '')::text AS remedy,
       coalesce(j.ended->'denied'->>'text', '')::text AS denied,
       (j.ended ? 'denied' AND EXISTS (
           SELECT FROM policy_overrides o WHERE o.install_id = j.install_id AND o.effect_digest = j.ended->'denied'->>'effect_digest' AND o.until > now()
       ))::boolean AS overridden,
       (j.cancel_requested_at IS NOT NULL)::boolean AS cancel_requested
FROM (
    SELECT r.*, (r.result - 'plan')::jsonb AS ended FROM runner_jobs r
    WHERE r.workflow_id = sqlc.arg(workflow_id) AND r.step_id IN (SELECT o.id FROM open o) OFFSET 0
) j ORDER BY j.queued_at, j.id;

-- name: GetResource :one
SELECT * FROM resources WHERE id = sqlc.arg(id);

-- name: LockQueue :many
-- The approved changes of an install that wait for a resource, the next one first:
-- the order in which people asked for their workflows.
SELECT c.id AS change_id, s.resource_id::text AS resource_id, s.name AS step, coalesce(s.wait_on, '')::text AS waits_for, coalesce(c.decided_at, c.created_at)::timestamptz AS since,
       w.id AS workflow_id, w.kind AS workflow_kind, w.created_by, w.requested_at
FROM steps s JOIN changes c ON c.id = s.change_id JOIN workflows w ON w.id = s.workflow_id
WHERE w.install_id = sqlc.arg(install_id) AND w.state IN ('queued', 'running', 'waiting')
  AND s.state = 'waiting' AND s.wait_reason = 'lock' AND s.resource_id IS NOT NULL
ORDER BY w.requested_at, c.id;

-- name: LockHolders :many
-- The changes that hold resources of an install.
SELECT c.id AS change_id, r.id AS resource_id, s.name AS step, coalesce(c.executed_at, c.created_at)::timestamptz AS since,
       w.id AS workflow_id, w.kind AS workflow_kind, w.created_by
FROM resources r JOIN changes c ON c.id = r.locked_by JOIN steps s ON s.id = c.step_id JOIN workflows w ON w.id = c.workflow_id
WHERE r.install_id = sqlc.arg(install_id) ORDER BY r.id;
