-- Stacks: how a runner gets in, and the rows that it needs.

-- name: InsertStackVersion :one
INSERT INTO stack_versions (id, org_id, install_id, version, kind, body, phone_home_hash, expires_at)
SELECT sqlc.arg(id)::text, berth.current_org(), sqlc.arg(install_id)::text, coalesce(max(version), 0) + 1, sqlc.arg(kind)::text,
       sqlc.arg(body)::jsonb, sqlc.arg(phone_home_hash)::bytea, sqlc.arg(expires_at)::timestamptz
FROM stack_versions WHERE install_id = sqlc.arg(install_id)
RETURNING *;

-- name: ExpireStackVersions :exec
-- A new version makes the secrets of those before it worthless.
UPDATE stack_versions SET state = 'expired' WHERE install_id = sqlc.arg(install_id) AND state = 'pending';

-- name: NewestStack :one
SELECT * FROM stack_versions WHERE install_id = sqlc.arg(install_id) ORDER BY version DESC LIMIT 1;

-- name: LockStackVersion :one
SELECT * FROM stack_versions WHERE id = sqlc.arg(id) FOR UPDATE;

-- name: SetStackBody :exec
UPDATE stack_versions SET body = sqlc.arg(body) WHERE id = sqlc.arg(id);

-- name: InsertInstallRunner :one
INSERT INTO runners (id, org_id, install_id, kind, name)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(install_id), 'install', sqlc.arg(name))
RETURNING *;

-- name: StackRunner :one
-- The runner that is not revoked, else the last one.
SELECT * FROM runners WHERE install_id = sqlc.arg(install_id) ORDER BY state = 'revoked', id DESC LIMIT 1;

-- name: RevokeRunnerOfInstall :exec
UPDATE runners SET state = 'revoked', revoked_at = now() WHERE id = sqlc.arg(runner_id) AND state <> 'revoked';

-- name: CloseRunnerSessions :exec
UPDATE runner_sessions SET closed_at = now(), close_reason = sqlc.arg(reason) WHERE runner_id = sqlc.arg(runner_id) AND closed_at IS NULL;

-- name: InsertEnrolment :one
INSERT INTO enrolments (id, org_id, runner_id, secret_hash, replaces, created_by, expires_at)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(runner_id), sqlc.arg(secret_hash), sqlc.arg(replaces), sqlc.arg(created_by), sqlc.arg(expires_at))
RETURNING *;

-- name: ExpireEnrolments :exec
-- A new secret makes those before it worthless.
UPDATE enrolments SET state = 'expired' WHERE runner_id = sqlc.arg(runner_id) AND state = 'open';
