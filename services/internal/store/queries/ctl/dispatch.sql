-- Runner jobs as ctl-api makes and reads them, and the locks and fences of
-- resources. All run inside store.Tx of the org.

-- name: InsertRunnerJob :exec
INSERT INTO runner_jobs (id, org_id, runner_id, install_id, change_id, step_id, workflow_id, action_run_id, resource_id,
                         kind, operation, mutates, spec, signed_order, fence, timeout_seconds, trace)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(runner_id), sqlc.narg(install_id), sqlc.narg(change_id), sqlc.narg(step_id),
        sqlc.narg(workflow_id), sqlc.narg(action_run_id), sqlc.narg(resource_id), sqlc.arg(kind), sqlc.arg(operation),
        sqlc.arg(mutates), sqlc.arg(spec), sqlc.narg(signed_order), sqlc.narg(fence), sqlc.arg(timeout_seconds), sqlc.arg(trace));

-- name: JobsOfWorkflow :many
-- The jobs of a workflow, without their bulk; oldest first. A result holds the plan,
-- which Postgres would unpack for each of the five fields that are read of it.
SELECT j.id, j.change_id, j.step_id, j.action_run_id, j.operation, j.mutates, j.state, j.attempt, j.queued_at, j.leased_at, j.finished_at, j.timeout_seconds,
       coalesce(j.ended->>'outcome', '')::text AS outcome,
       coalesce(j.ended->>'reason', '')::text AS reason,
       coalesce((j.ended->>'no_change')::boolean, false)::boolean AS no_change,
       coalesce(j.error, j.ended->>'error', '')::text AS error,
       coalesce(j.ended->>'remedy', '')::text AS remedy,
       (j.cancel_requested_at IS NOT NULL)::boolean AS cancel_requested
FROM (
    SELECT r.*, (r.result - 'plan')::jsonb AS ended FROM runner_jobs r WHERE r.workflow_id = sqlc.arg(workflow_id) OFFSET 0
) j ORDER BY j.queued_at, j.id;

-- name: ProgressOfWorkflow :many
-- What the engines of its leased jobs do, of those that tell.
SELECT j.step_id, l.progress, l.progress_at
FROM runner_jobs j JOIN leases l ON l.job_id = j.id AND l.attempt = j.attempt
WHERE j.workflow_id = sqlc.arg(workflow_id) AND j.state = 'leased' AND j.step_id IS NOT NULL AND l.progress IS NOT NULL
ORDER BY j.queued_at, j.id;

-- name: JobsOfChange :many
SELECT j.id, j.operation, j.state, j.attempt, j.queued_at, j.leased_at, j.finished_at, coalesce(j.error, '')::text AS error,
       coalesce(l.stream_id, '')::text AS stream_id, coalesce(j.action_run_id, '')::text AS action_run_id
FROM runner_jobs j LEFT JOIN leases l ON l.job_id = j.id AND l.attempt = j.attempt
WHERE j.change_id = sqlc.arg(change_id) ORDER BY j.queued_at, j.id;

-- name: JobsOfStep :many
SELECT j.id, j.operation, j.state, j.attempt, j.queued_at, j.leased_at, j.finished_at, coalesce(j.error, '')::text AS error,
       coalesce(l.stream_id, '')::text AS stream_id, coalesce(j.action_run_id, '')::text AS action_run_id
FROM runner_jobs j LEFT JOIN leases l ON l.job_id = j.id AND l.attempt = j.attempt
WHERE j.step_id = sqlc.arg(step_id) ORDER BY j.queued_at, j.id;

-- name: JobsOfRunner :many
-- A page of a runner's jobs, newest first, with what each is for and the log of its
-- last attempt.
SELECT j.id, j.kind, j.operation, j.mutates, j.state, j.attempt, j.install_id, j.resource_id, j.workflow_id, j.step_id, j.change_id,
       j.action_run_id, j.build_id, j.error, j.queued_at, j.leased_at, j.finished_at,
       l.stream_id, coalesce(i.name, '')::text AS install_name, coalesce(r.name, '')::text AS resource_name, coalesce(r.kind, '')::text AS resource_kind
FROM runner_jobs j
LEFT JOIN leases l ON l.org_id = j.org_id AND l.job_id = j.id AND l.attempt = j.attempt
LEFT JOIN installs i ON i.org_id = j.org_id AND i.id = j.install_id
LEFT JOIN resources r ON r.org_id = j.org_id AND r.id = j.resource_id
WHERE j.runner_id = sqlc.arg(runner_id)
  AND (sqlc.arg(state)::text = '' OR j.state = sqlc.arg(state))
  AND (sqlc.arg(after)::text = '' OR j.id < sqlc.arg(after))
ORDER BY j.id DESC LIMIT sqlc.arg(most);

-- name: JobResult :one
SELECT id, state, error, result, attempt FROM runner_jobs WHERE id = sqlc.arg(id);

-- name: CancelJob :exec
-- A queued job ends at once; a leased one is told at its next renewal.
UPDATE runner_jobs SET cancel_requested_at = coalesce(cancel_requested_at, now()),
    state = CASE WHEN state = 'queued' THEN 'cancelled' ELSE state END,
    finished_at = CASE WHEN state = 'queued' THEN now() ELSE finished_at END
WHERE id = sqlc.arg(id) AND state IN ('queued', 'leased');

-- name: ResourcesOfInstall :many
SELECT * FROM resources WHERE install_id = sqlc.arg(install_id) ORDER BY kind DESC, name;

-- name: AppliesWithoutRelease :many
-- The applies that were ordered of resources that stand on no release, of an
-- install, the oldest first: those that ended after the resource was found or made
-- absent, or have not ended.
SELECT r.id AS resource_id, c.state, coalesce(c.release_id, '')::text AS release_id
FROM resources r
JOIN changes c ON c.org_id = r.org_id AND c.install_id = r.install_id AND c.resource_id = r.id
LEFT JOIN changes l ON l.org_id = r.org_id AND l.id = r.live_change_id
WHERE r.install_id = sqlc.arg(install_id) AND r.kind <> 'stack' AND r.live_release_id IS NULL AND c.apply_job_id IS NOT NULL
  AND c.id IS DISTINCT FROM r.live_change_id AND (l.id IS NULL OR c.finished_at IS NULL OR c.finished_at > l.finished_at)
ORDER BY r.id, c.executed_at;

-- name: GrantResource :one
-- The exclusive grant to mutate a resource: raises its fence and takes its lock.
UPDATE resources SET fence = fence + 1, locked_by = sqlc.arg(change_id)::text, locked_at = now(), state = 'changing',
    version = version + 1, updated_at = now()
WHERE id = sqlc.arg(id) AND locked_by IS NULL
RETURNING fence;

-- name: HoldResource :one
-- The exclusive grant to a script, which keeps everybody else from changing the
-- resource and does not change what is known of it.
UPDATE resources SET fence = fence + 1, locked_by = sqlc.arg(change_id)::text, locked_at = now(), version = version + 1, updated_at = now()
WHERE id = sqlc.arg(id) AND locked_by IS NULL
RETURNING fence;

-- name: LetGoOfResource :exec
-- The script that held the resource has ended.
UPDATE resources SET locked_by = NULL, locked_at = NULL, version = version + 1, updated_at = now()
WHERE id = sqlc.arg(id) AND locked_by = sqlc.arg(change_id)::text;

-- name: FreeTerraformLock :exec
-- A new grant takes over from whatever attempt held Terraform's own lock.
DELETE FROM tf_locks WHERE resource_id = sqlc.arg(resource_id) AND fence < sqlc.arg(fence);

-- name: SettleResource :exec
-- The change that held the resource has ended.
UPDATE resources SET locked_by = NULL, locked_at = NULL, state = sqlc.arg(state), version = version + 1, updated_at = now()
WHERE id = sqlc.arg(id) AND locked_by = sqlc.arg(change_id)::text;

-- name: MakeResourceLive :exec
-- What the resource is now, after a deploy that was applied or found nothing to do.
UPDATE resources SET state = 'live', type = sqlc.arg(type), live_release_id = sqlc.narg(release_id), live_revision_id = sqlc.narg(revision_id),
    live_artifact_digest = sqlc.narg(artifact_digest), live_inputs_version = sqlc.arg(inputs_version)::int,
    live_effect_digest = sqlc.narg(effect_digest), live_change_id = sqlc.arg(change_id)::text,
    outputs = coalesce(sqlc.narg(outputs), outputs), drift = 'none', version = version + 1, updated_at = now()
WHERE id = sqlc.arg(id);

-- name: MakeResourceAbsent :exec
UPDATE resources SET state = 'absent', live_release_id = NULL, live_revision_id = NULL, live_artifact_digest = NULL,
    live_inputs_version = NULL, live_effect_digest = NULL, live_change_id = sqlc.arg(change_id)::text, outputs = '{}',
    health = 'unknown', health_since = NULL, drift = 'unknown', version = version + 1, updated_at = now()
WHERE id = sqlc.arg(id);

-- name: SetResourceHealth :exec
-- The health of an install's live resources, but for those that a probe looks at.
UPDATE resources SET health = sqlc.arg(health), health_since = now(), version = version + 1, updated_at = now()
WHERE install_id = sqlc.arg(install_id) AND kind <> 'stack' AND state = 'live' AND health <> sqlc.arg(health)::text
  AND NOT id = ANY(sqlc.arg(probed)::text[]);

-- name: SetProbedHealth :exec
UPDATE resources SET health = sqlc.arg(health), health_since = now(), version = version + 1, updated_at = now()
WHERE id = sqlc.arg(id) AND state = 'live' AND health <> sqlc.arg(health)::text;

-- name: MoveInstall :exec
-- The install's own state; release and inputs move only when given.
UPDATE installs SET state = sqlc.arg(state), release_id = coalesce(sqlc.narg(release_id), release_id) WHERE id = sqlc.arg(id);

-- name: ReleaseItemsOf :many
-- Each component of a release with its revision, and what its source was resolved
-- to.
SELECT i.component_id, i.revision_id, i.build_id, i.artifact_repository, i.artifact_digest,
       c.kind, c.name, r.type, r.spec, coalesce(b.source_commit, '')::text AS source_commit,
       coalesce(b.provenance->>'signed_by', '')::text AS signed_by
FROM release_items i
JOIN builds b ON b.id = i.build_id
JOIN components c ON c.id = i.component_id
JOIN component_revisions r ON r.id = i.revision_id
WHERE i.release_id = sqlc.arg(release_id) ORDER BY c.kind DESC, c.name;

-- name: ReleaseItemOf :one
-- What a release has of one component.
SELECT i.revision_id, i.artifact_repository, i.artifact_digest, r.spec, coalesce(b.source_commit, '')::text AS source_commit,
       coalesce(b.provenance->>'signed_by', '')::text AS signed_by
FROM release_items i
JOIN builds b ON b.id = i.build_id
JOIN component_revisions r ON r.id = i.revision_id
WHERE i.release_id = sqlc.arg(release_id) AND i.component_id = sqlc.arg(component_id);

-- name: ConfigBodyOfRelease :one
SELECT r.id AS release_id, r.number, r.app_id, c.body, a.name AS app_name
FROM releases r JOIN configs c ON c.id = r.config_id JOIN apps a ON a.id = r.app_id WHERE r.id = sqlc.arg(release_id);

-- name: JobSpec :one
-- What was ordered, with the order: the row alone proves nothing.
SELECT spec, signed_order FROM runner_jobs WHERE id = sqlc.arg(id);

-- name: InstallRunner :one
-- The runner of an install: the one that is not revoked, else the last.
SELECT * FROM runners WHERE install_id = sqlc.arg(install_id)::text ORDER BY state = 'revoked', id DESC LIMIT 1;

-- name: RunnersOfInstalls :many
-- The runner of each install, as InstallRunner has it.
SELECT DISTINCT ON (install_id) * FROM runners WHERE install_id = ANY (sqlc.arg(install_ids)::text[])
ORDER BY install_id, state = 'revoked', id DESC;

-- name: ShowRunners :many
-- Runners with the install's name, newest first; one by id, or all with NULL.
SELECT sqlc.embed(r), coalesce(i.name, '')::text AS install_name
FROM runners r LEFT JOIN installs i ON i.org_id = r.org_id AND i.id = r.install_id
WHERE (sqlc.narg(id)::text IS NULL OR r.id = sqlc.narg(id))
  AND (sqlc.narg(install_id)::text IS NULL OR r.install_id = sqlc.narg(install_id))
  AND (sqlc.narg(after)::text IS NULL OR r.id < sqlc.narg(after))
ORDER BY r.id DESC LIMIT sqlc.arg(most);

-- name: RevokeRunnerByID :exec
-- runner-api is told by berth_revoked and ends sessions and polls at once.
UPDATE runners SET state = 'revoked', revoked_at = coalesce(revoked_at, now()) WHERE id = sqlc.arg(id);

-- name: CloseSessionsOfRunner :exec
UPDATE runner_sessions SET closed_at = now(), close_reason = sqlc.arg(reason) WHERE runner_id = sqlc.arg(runner_id) AND closed_at IS NULL;

-- name: RevokeRegistryTokensOfRunner :exec
UPDATE registry_tokens SET revoked_at = now() WHERE runner_id = sqlc.arg(runner_id)::text AND revoked_at IS NULL;

-- name: MakeStackLive :exec
-- The stack has phoned home.
UPDATE resources SET state = 'live', version = version + 1, updated_at = now()
WHERE install_id = sqlc.arg(install_id) AND kind = 'stack' AND state <> 'live';
