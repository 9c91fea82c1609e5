-- Log streams. runner-api opens them and mints tokens at claim, closes them
-- when an attempt is voided; log-ingest appends, finishes and reads. All run
-- inside store.Tx of the org, but the two that say so.

-- name: OpenLogStream :one
-- The stream of this attempt, made now unless a lost reply has made it before.
INSERT INTO log_streams (id, org_id, install_id, job_id, attempt)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.narg(install_id), sqlc.arg(job_id)::text, sqlc.arg(attempt))
ON CONFLICT (org_id, job_id, attempt) DO UPDATE SET state = log_streams.state
RETURNING id;

-- name: OpenRunLogStream :one
-- The stream of an action run that the runner started itself, made now unless a
-- lost reply has made it before.
INSERT INTO log_streams (id, org_id, install_id, run_id)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.narg(install_id), sqlc.arg(run_id)::text)
ON CONFLICT (org_id, run_id) DO UPDATE SET state = log_streams.state
RETURNING id;

-- name: MintLogToken :exec
-- A token for one stream. A repeated claim mints another one: only the hash is
-- kept, so the first cannot be shown again; both work.
INSERT INTO log_tokens (hash, org_id, stream_id, runner_id, session_id, expires_at)
VALUES (sqlc.arg(hash), berth.current_org(), sqlc.arg(stream_id), sqlc.arg(runner_id), sqlc.arg(session_id), sqlc.arg(expires_at));

-- name: CloseLogStreams :exec
-- The attempts of these streams are voided: no line is taken any more. A stream
-- that was finished stays finished.
UPDATE log_streams SET state = 'closed', finished_at = now()
WHERE id = ANY (sqlc.arg(stream_ids)::text[]) AND state = 'open';

-- name: RevokeLogTokensOfStreams :exec
-- The tokens of voided attempts; belongs to CloseLogStreams.
UPDATE log_tokens SET revoked_at = now()
WHERE stream_id = ANY (sqlc.arg(stream_ids)::text[]) AND revoked_at IS NULL;

-- name: RevokeLogTokensOfRunner :exec
-- The runner was revoked: none of its tokens is good any more.
UPDATE log_tokens SET revoked_at = now()
WHERE runner_id = sqlc.arg(runner_id) AND revoked_at IS NULL;
