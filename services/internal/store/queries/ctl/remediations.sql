-- What runners did about unhealthy checks, as they told it. All run inside store.Tx of the org.

-- name: ListRemediations :many
-- A page of an install's, newest first, behind the id `after`.
SELECT * FROM remediations
WHERE install_id = sqlc.arg(install_id) AND (sqlc.arg(after)::text = '' OR id < sqlc.arg(after))
  AND (NOT sqlc.arg(open)::boolean OR ended_at IS NULL) AND (sqlc.arg(state)::text = '' OR state = sqlc.arg(state))
ORDER BY id DESC LIMIT sqlc.arg(most);

-- name: ChecksToAskAbout :many
-- The unhealthy checks of an install about which no workflow was started since, or is open.
SELECT c.name FROM checks c WHERE c.install_id = sqlc.arg(install_id) AND c.verdict = 'unhealthy'
  AND NOT EXISTS (SELECT FROM workflows w WHERE w.install_id = c.install_id AND w.params->>'remedy' = c.name
                  AND (w.created_at >= c.since OR w.state IN ('queued', 'running', 'waiting')))
ORDER BY c.name;

-- name: OpenRemediations :many
-- Those that need attention and have not ended, of an install or the whole org, oldest first.
SELECT sqlc.embed(m), i.name AS install_name FROM remediations m JOIN installs i ON i.org_id = m.org_id AND i.id = m.install_id
WHERE m.ended_at IS NULL AND m.state = 'needs_attention' AND (sqlc.narg(install_id)::text IS NULL OR m.install_id = sqlc.narg(install_id))
ORDER BY m.id LIMIT sqlc.arg(most);
