-- Sessions of runners: one is current, the one with the runner's epoch.

-- name: RunnerSessionByToken :one
-- Who the bearer of a session token is, and whether the session still counts.
SELECT s.id, s.runner_id, s.epoch, s.closed_at, s.close_reason,
       r.epoch AS runner_epoch, r.state AS runner_state, r.kind, r.install_id, r.public_key, r.slots, r.switch, coalesce(r.facts->>'problem', '')::text AS problem
FROM runner_sessions s JOIN runners r ON r.org_id = s.org_id AND r.id = s.runner_id
WHERE s.token_hash = sqlc.arg(token_hash);

-- name: RunnerOpenSession :exec
INSERT INTO runner_sessions (id, org_id, runner_id, epoch, token_hash, version)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(runner_id), sqlc.arg(epoch), sqlc.arg(token_hash), sqlc.arg(version));

-- name: RunnerCloseSessions :exec
-- The sessions of this runner are over.
UPDATE runner_sessions SET closed_at = now(), close_reason = sqlc.arg(reason)::text
WHERE runner_id = sqlc.arg(runner_id) AND closed_at IS NULL;
