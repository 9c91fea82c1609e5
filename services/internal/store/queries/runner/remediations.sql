-- What runners tell of remediations, and what holds their attempts back; all inside store.Tx
-- of the org.

-- name: RunnerKnowsRemedy :one
-- Whether the remediation was reported before, or any settings that were good when it began
-- have a remedy of this check.
SELECT (EXISTS (SELECT 1 FROM remediations r WHERE r.id = sqlc.arg(id) AND r.install_id = sqlc.arg(install_id))
    OR EXISTS (
        SELECT 1 FROM settings_versions v
        CROSS JOIN LATERAL json_array_elements(convert_from(decode(v.envelope ->> 'payload', 'base64'), 'UTF8')::json -> 'remedies') AS s(item)
        CROSS JOIN LATERAL json_array_elements(s.item -> 'heals') AS h(heal)
        WHERE v.install_id = sqlc.arg(install_id) AND v.expires_at > sqlc.arg(began_at)::timestamptz
          AND h.heal ->> 'check' = sqlc.arg(check_name)::text))::boolean AS known;

-- name: RunnerPutRemediation :execrows
-- A remediation as it stands. An older report, or one of another install's, changes nothing.
INSERT INTO remediations (id, org_id, install_id, check_name, action, resource_id, seq, state, why, attempts, attempts_of, reverted, began_at, changed_at, ended_at)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(install_id), sqlc.arg(check_name), sqlc.arg(action),
        (SELECT r.id FROM resources r WHERE r.id = sqlc.narg(resource_id) AND r.install_id = sqlc.arg(install_id)),
        sqlc.arg(seq), sqlc.arg(state), sqlc.arg(why), sqlc.arg(attempts), sqlc.arg(attempts_of), sqlc.arg(reverted), sqlc.arg(began_at), sqlc.arg(changed_at), sqlc.narg(ended_at))
ON CONFLICT (org_id, id) DO UPDATE
SET action = excluded.action, seq = excluded.seq, state = excluded.state, why = excluded.why, attempts = excluded.attempts,
    attempts_of = excluded.attempts_of, reverted = excluded.reverted, changed_at = excluded.changed_at, ended_at = excluded.ended_at, told_at = now()
WHERE remediations.seq < excluded.seq AND remediations.install_id = excluded.install_id;

-- name: RunnerLockRemediations :exec
-- One at a time asks whether an attempt may begin, so that the answers add up.
SELECT pg_advisory_xact_lock(hashtextextended('berth.remediations ' || berth.current_org(), 0));

-- name: RunnerRemediationFacts :one
-- What holds an attempt back. Of runners that were silent for an hour nothing counts as running.
-- An install counts once, whatever its runner tells.
SELECT coalesce((SELECT r.name FROM resources r WHERE r.install_id = sqlc.arg(install_id) AND r.locked_by IS NOT NULL ORDER BY r.name LIMIT 1), '')::text AS locked,
    coalesce((SELECT w.number FROM workflows w WHERE w.install_id = sqlc.arg(install_id) AND w.state = 'running' ORDER BY w.number LIMIT 1), 0)::int AS workflow,
    (SELECT count(DISTINCT m.install_id) FROM remediations m WHERE m.state = 'running' AND m.install_id <> sqlc.arg(install_id) AND m.changed_at > now() - interval '1 hour')::int AS running,
    (SELECT count(DISTINCT m.install_id) FROM remediations m JOIN installs i ON i.org_id = m.org_id AND i.id = m.install_id
     WHERE m.state = 'needs_attention' AND m.action = sqlc.arg(action) AND m.install_id <> sqlc.arg(install_id) AND m.changed_at > now() - interval '1 hour'
       AND i.app_id = (SELECT own.app_id FROM installs own WHERE own.id = sqlc.arg(install_id)))::int AS failed;

-- name: RunnerMayRemedy :exec
-- The attempt begins with the answer, so that the next one who asks counts it.
UPDATE remediations SET state = 'running', why = '', changed_at = now(), told_at = now() WHERE id = sqlc.arg(id) AND install_id = sqlc.arg(install_id);
