-- Builds, as the builder works on them. It locks the app before the build, as a
-- sync does: so either the sync sees that a build has succeeded, or the builder
-- sees the config that the sync made of it. Neither lock is in the way of
-- foreign keys.

-- name: BuilderLockApp :one
-- The app of a build, locked.
SELECT a.id, a.name FROM apps a
WHERE a.id = (SELECT b.app_id FROM builds b WHERE b.id = sqlc.arg(build_id))
FOR NO KEY UPDATE OF a;

-- name: BuilderLockBuild :one
-- A build with what it is a build of, locked.
SELECT sqlc.embed(b), c.name AS component_name, r.type AS component_type, r.spec, r.policies
FROM builds b
JOIN components c ON c.org_id = b.org_id AND c.id = b.component_id
JOIN component_revisions r ON r.org_id = b.org_id AND r.id = b.revision_id
WHERE b.id = sqlc.arg(build_id)
FOR NO KEY UPDATE OF b;

-- name: BuilderReusable :many
-- Artifacts that were built of exactly the same, each with the build that made
-- it; those of the same component first, then the newest.
SELECT b.id, b.artifact_repository, b.artifact_digest, b.artifact_size_bytes, b.provenance
FROM builds b
WHERE b.resolved_digest = sqlc.arg(resolved_digest)::text AND b.state = 'succeeded' AND b.reused_from IS NULL
ORDER BY (b.component_id = sqlc.arg(component_id)) DESC, b.id DESC LIMIT 5;

-- name: BuilderOtherPin :many
-- What a version of a chart was in the newest earlier build of a component, if it
-- was another chart. version_at is the version with an "@" at its end.
SELECT earlier.source_commit::text AS source_commit FROM (
    SELECT b.source_commit FROM builds b JOIN builds this ON this.org_id = b.org_id AND this.component_id = b.component_id
    WHERE this.id = sqlc.arg(build_id) AND b.id < this.id AND b.state = 'succeeded'
      AND b.source->>'repo' = this.source->>'repo' AND starts_with(b.source_commit, sqlc.arg(version_at)::text)
    ORDER BY b.id DESC LIMIT 1
) earlier
WHERE earlier.source_commit <> sqlc.arg(source_commit)::text;

-- name: BuilderSetSource :exec
-- What the source of a build is exactly.
UPDATE builds SET source_commit = sqlc.narg(source_commit), resolved_digest = sqlc.arg(resolved_digest)::text, error = NULL
WHERE id = sqlc.arg(id);

-- name: BuilderSetProvenance :exec
UPDATE builds SET provenance = sqlc.arg(provenance), error = NULL WHERE id = sqlc.arg(id);

-- name: BuilderSetTrouble :exec
-- Why a build that is still tried does not get on.
UPDATE builds SET error = sqlc.arg(error)::text WHERE id = sqlc.arg(id);

-- name: BuilderSetJob :exec
-- The build is with the Build Runner now.
UPDATE builds SET state = 'running', started_at = coalesce(started_at, now()), job_id = sqlc.arg(job_id)::text, error = NULL
WHERE id = sqlc.arg(id);

-- name: BuilderForgetJob :exec
-- The machine that the job was ordered of is gone: the build waits for the one of
-- now.
UPDATE builds SET state = 'queued', job_id = NULL, provenance = sqlc.arg(provenance), error = NULL WHERE id = sqlc.arg(id);

-- name: BuilderSucceed :exec
UPDATE builds
SET state = 'succeeded', started_at = coalesce(started_at, now()), finished_at = now(), error = NULL,
    reused_from = sqlc.narg(reused_from), artifact_repository = sqlc.arg(artifact_repository)::text,
    artifact_digest = sqlc.arg(artifact_digest)::text, artifact_size_bytes = sqlc.arg(artifact_size_bytes)::bigint,
    provenance = sqlc.arg(provenance)
WHERE id = sqlc.arg(id);

-- name: BuilderEnd :exec
-- The build came to nothing: failed or cancelled.
UPDATE builds SET state = sqlc.arg(state), finished_at = now(), error = sqlc.narg(error) WHERE id = sqlc.arg(id);

-- name: BuilderAddJob :exec
INSERT INTO runner_jobs (id, org_id, runner_id, build_id, kind, operation, spec, signed_order, timeout_seconds, trace)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(runner_id), sqlc.arg(build_id)::text, sqlc.arg(kind), sqlc.arg(operation),
        sqlc.arg(spec), sqlc.narg(signed_order), sqlc.arg(timeout_seconds), sqlc.arg(trace));

-- name: BuilderJob :one
-- The runner job of a build.
SELECT id, runner_id, state, attempt, result, error, (cancel_requested_at IS NOT NULL)::boolean AS cancel_requested, finished_at
FROM runner_jobs WHERE id = sqlc.arg(id);

-- name: BuilderStopJob :one
-- Asks for the end of a job; one that no runner has yet ends at once. Returns
-- its state.
UPDATE runner_jobs
SET cancel_requested_at = coalesce(cancel_requested_at, now()),
    finished_at = CASE WHEN state = 'queued' THEN now() ELSE finished_at END,
    state = CASE WHEN state = 'queued' THEN 'cancelled' ELSE state END
WHERE id = sqlc.arg(id)
RETURNING state;

-- name: BuilderBlob :one
-- An uploaded archive.
SELECT body FROM blobs WHERE digest = sqlc.arg(digest);

-- name: BuilderConfigsOf :many
-- The configs that a build may complete: those in which its component stands
-- with its build digest, and that have no release yet or are the app's newest;
-- the oldest first.
SELECT c.id, c.number, c.digest, EXISTS (SELECT FROM releases l WHERE l.org_id = c.org_id AND l.config_id = c.id)::boolean AS released
FROM configs c
JOIN config_items i ON i.org_id = c.org_id AND i.config_id = c.id
JOIN component_revisions r ON r.org_id = i.org_id AND r.id = i.revision_id
WHERE c.app_id = sqlc.arg(app_id) AND i.component_id = sqlc.arg(component_id) AND r.build_digest = sqlc.arg(build_digest)
  AND (NOT EXISTS (SELECT FROM releases l WHERE l.org_id = c.org_id AND l.config_id = c.id)
       OR c.number = (SELECT max(n.number) FROM configs n WHERE n.app_id = c.app_id))
ORDER BY c.number;
