-- Sessions of runners: one is current, the one with the runner's epoch.

-- name: RunnerSessionByToken :one
-- Who the bearer of a session token is, and whether the session still counts.
SELECT s.id, s.runner_id, s.epoch, s.closed_at, s.close_reason, (s.used_at IS NOT NULL)::boolean AS used,
       r.epoch AS runner_epoch, r.state AS runner_state, r.kind, r.install_id, r.public_key, r.slots, r.switch, coalesce(r.switch_reason, '')::text AS switch_reason, r.switch_since, coalesce(r.facts->>'problem', '')::text AS problem,
       (r.disputed_since IS NOT NULL)::boolean AS disputed
FROM runner_sessions s JOIN runners r ON r.org_id = s.org_id AND r.id = s.runner_id
WHERE s.token_hash = sqlc.arg(token_hash);

-- name: RunnerOpenSession :exec
INSERT INTO runner_sessions (id, org_id, runner_id, epoch, token_hash, version, opening)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(runner_id), sqlc.arg(epoch), sqlc.arg(token_hash), sqlc.arg(version), sqlc.narg(opening));

-- name: RunnerSessionOfOpening :one
-- The session of this runner that has an opening, locked: its first use waits.
SELECT id, (used_at IS NOT NULL)::boolean AS used FROM runner_sessions
WHERE runner_id = sqlc.arg(runner_id) AND opening = sqlc.arg(opening)::text
FOR NO KEY UPDATE;

-- name: RunnerAnswerAgain :exec
-- The answer of this session was lost: it gets another token, and what the first
-- one was given with counts no more.
UPDATE runner_sessions SET epoch = sqlc.arg(epoch), token_hash = sqlc.arg(token_hash), version = sqlc.arg(version) WHERE id = sqlc.arg(id);

-- name: RunnerUsedSession :execrows
-- The first request with a session's token; no row once the token is another.
UPDATE runner_sessions SET used_at = coalesce(used_at, now()) WHERE token_hash = sqlc.arg(token_hash);

-- name: RunnerCloseSessions :exec
-- The sessions of this runner are over.
UPDATE runner_sessions SET closed_at = now(), close_reason = sqlc.arg(reason)::text
WHERE runner_id = sqlc.arg(runner_id) AND closed_at IS NULL;
