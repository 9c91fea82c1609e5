-- The Build Runner of an org, and the wake-ups and look-ups of the builder that
-- start without an org.

-- name: BuilderOrgOf :one
-- The org that an id belongs to, before any org is set; empty when unknown.
SELECT coalesce(berth.org_of(sqlc.arg(object_id)::text), '')::text;

-- name: BuilderOpenWork :one
-- Ids of what was not finished when the builder went away: build, build_runner.
SELECT berth.open_work(sqlc.arg(kind)::text)::text[];

-- name: BuilderRunnerOfOrg :one
-- The org's Build Runner.
SELECT id, state, public_key FROM runners WHERE kind = 'build' AND state <> 'revoked';

-- name: BuilderWork :one
-- What there is to do for the org's Build Runner: whether a build is open, whether
-- one is being worked on, and when the last one ended (1970 for never).
SELECT EXISTS (SELECT FROM builds WHERE state IN ('queued', 'running'))::boolean AS open,
       EXISTS (SELECT FROM runner_jobs WHERE state = 'leased')::boolean AS busy,
       coalesce((SELECT max(finished_at) FROM builds), 'epoch')::timestamptz AS last_end;

-- name: BuilderAddRunner :exec
INSERT INTO runners (id, org_id, kind, name) VALUES (sqlc.arg(id), berth.current_org(), 'build', 'build-runner');

-- name: BuilderAddEnrolment :exec
-- A single-use secret for the Build Runner. replaces: the data directory of the
-- one before is gone, and the builder, which owned it, says so.
INSERT INTO enrolments (id, org_id, runner_id, secret_hash, replaces, created_by, expires_at)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(runner_id), sqlc.arg(secret_hash), sqlc.arg(replaces), 'builder',
        now() + make_interval(secs => sqlc.arg(seconds)::float8));

-- name: BuilderEnrolment :one
-- What became of a secret.
SELECT state, (expires_at <= now())::boolean AS expired FROM enrolments
WHERE runner_id = sqlc.arg(runner_id) AND secret_hash = sqlc.arg(secret_hash);

-- name: BuilderExpireEnrolments :exec
-- Secrets that were not used are worth nothing any more.
UPDATE enrolments SET state = 'expired', expires_at = least(expires_at, now()) WHERE runner_id = sqlc.arg(runner_id) AND state = 'open';
