-- What happened to an install, and what it was at a time. All run inside store.Tx of
-- the org.

-- name: SetActor :exec
-- Who changes something in this transaction: the histories keep it.
SELECT set_config('berth.actor', sqlc.arg(actor)::text, true);

-- name: TimelineBackward :many
-- Entries of an install between two places, both excluded, newest first, and with
-- with_app those of its app that are of no install; an empty filter lets all pass.
-- The place of an entry is its time and number. Beside them stands what an event does
-- not hold, because it leaves the control plane: numbers and errors.
SELECT t.seq, t.at, t.kind, t.install_id, t.body, r.number AS release_number, w.kind AS workflow_kind, coalesce(w.plan_only, false) AS plan_only, w.ended, w.ended_by,
       coalesce(c.error, w.error) AS error
FROM (
    (SELECT * FROM timeline x
     WHERE x.install_id = sqlc.arg(install_id)::text AND (x.at, x.seq) > (sqlc.arg(from_at)::timestamptz, sqlc.arg(from_seq)::bigint)
       AND (x.at, x.seq) < (sqlc.arg(to_at)::timestamptz, sqlc.arg(to_seq)::bigint)
       AND (cardinality(sqlc.arg(kinds)::text[]) = 0 OR x.kind = ANY (sqlc.arg(kinds)::text[]))
       AND (sqlc.arg(resource)::text = '' OR x.body ->> 'resource' = sqlc.arg(resource)) AND (sqlc.arg(actor)::text = '' OR x.body ->> 'actor' = sqlc.arg(actor))
     ORDER BY x.at DESC, x.seq DESC LIMIT sqlc.arg(most))
    UNION ALL
    (SELECT * FROM timeline x
     WHERE sqlc.arg(with_app)::bool AND x.app_id = sqlc.arg(app_id)::text AND x.install_id IS NULL AND (x.at, x.seq) > (sqlc.arg(from_at)::timestamptz, sqlc.arg(from_seq)::bigint)
       AND (x.at, x.seq) < (sqlc.arg(to_at)::timestamptz, sqlc.arg(to_seq)::bigint)
       AND (cardinality(sqlc.arg(kinds)::text[]) = 0 OR x.kind = ANY (sqlc.arg(kinds)::text[]))
       AND (sqlc.arg(resource)::text = '' OR x.body ->> 'resource' = sqlc.arg(resource)) AND (sqlc.arg(actor)::text = '' OR x.body ->> 'actor' = sqlc.arg(actor))
     ORDER BY x.at DESC, x.seq DESC LIMIT sqlc.arg(most))
) t
LEFT JOIN changes c ON t.kind IN ('change.failed', 'change.refused', 'change.uncertain') AND c.id = t.body ->> 'change_id'
LEFT JOIN workflows w ON w.id = t.body ->> 'workflow_id'
LEFT JOIN releases r ON r.id = coalesce(t.body ->> 'release_id', w.release_id)
ORDER BY t.at DESC, t.seq DESC LIMIT sqlc.arg(most);

-- name: TimelineForward :many
-- The same, oldest first.
SELECT t.seq, t.at, t.kind, t.install_id, t.body, r.number AS release_number, w.kind AS workflow_kind, coalesce(w.plan_only, false) AS plan_only, w.ended, w.ended_by,
       coalesce(c.error, w.error) AS error
FROM (
    (SELECT * FROM timeline x
     WHERE x.install_id = sqlc.arg(install_id)::text AND (x.at, x.seq) > (sqlc.arg(from_at)::timestamptz, sqlc.arg(from_seq)::bigint)
       AND (x.at, x.seq) < (sqlc.arg(to_at)::timestamptz, sqlc.arg(to_seq)::bigint)
       AND (cardinality(sqlc.arg(kinds)::text[]) = 0 OR x.kind = ANY (sqlc.arg(kinds)::text[]))
       AND (sqlc.arg(resource)::text = '' OR x.body ->> 'resource' = sqlc.arg(resource)) AND (sqlc.arg(actor)::text = '' OR x.body ->> 'actor' = sqlc.arg(actor))
     ORDER BY x.at, x.seq LIMIT sqlc.arg(most))
    UNION ALL
    (SELECT * FROM timeline x
     WHERE sqlc.arg(with_app)::bool AND x.app_id = sqlc.arg(app_id)::text AND x.install_id IS NULL AND (x.at, x.seq) > (sqlc.arg(from_at)::timestamptz, sqlc.arg(from_seq)::bigint)
       AND (x.at, x.seq) < (sqlc.arg(to_at)::timestamptz, sqlc.arg(to_seq)::bigint)
       AND (cardinality(sqlc.arg(kinds)::text[]) = 0 OR x.kind = ANY (sqlc.arg(kinds)::text[]))
       AND (sqlc.arg(resource)::text = '' OR x.body ->> 'resource' = sqlc.arg(resource)) AND (sqlc.arg(actor)::text = '' OR x.body ->> 'actor' = sqlc.arg(actor))
     ORDER BY x.at, x.seq LIMIT sqlc.arg(most))
) t
LEFT JOIN changes c ON t.kind IN ('change.failed', 'change.refused', 'change.uncertain') AND c.id = t.body ->> 'change_id'
LEFT JOIN workflows w ON w.id = t.body ->> 'workflow_id'
LEFT JOIN releases r ON r.id = coalesce(t.body ->> 'release_id', w.release_id)
ORDER BY t.at, t.seq LIMIT sqlc.arg(most);

-- name: InstallAt :one
-- What an install was set to at a time.
SELECT h.*, r.number AS release_number, f.number AS config_number
FROM install_history h
LEFT JOIN releases r ON r.org_id = h.org_id AND r.id = h.release_id
LEFT JOIN configs f ON f.org_id = r.org_id AND f.id = r.config_id
WHERE h.install_id = sqlc.arg(install_id) AND h.at <= sqlc.arg(at) ORDER BY h.at DESC, h.n DESC LIMIT 1;

-- name: HistoryBegins :one
-- The oldest time for which it is known what an install was.
SELECT at FROM install_history WHERE install_id = sqlc.arg(install_id) ORDER BY at, n LIMIT 1;

-- name: ResourcesAt :many
-- The resources of an install as they were at a time; those that were not made yet are
-- left out.
SELECT x.id, x.kind, x.name, h.type, h.state, h.health, h.drift, h.live_release_id, r.number AS live_release_number, h.live_artifact_digest,
       h.live_inputs_version, h.live_change_id, coalesce(o.outputs, '{}')::jsonb AS outputs
FROM resources x
CROSS JOIN LATERAL (SELECT * FROM resource_history y WHERE y.org_id = x.org_id AND y.resource_id = x.id AND y.at <= sqlc.arg(at)
                    ORDER BY y.at DESC, y.n DESC LIMIT 1) h
LEFT JOIN LATERAL (SELECT y.outputs FROM resource_history y WHERE y.org_id = x.org_id AND y.resource_id = x.id AND y.at <= sqlc.arg(at) AND y.outputs IS NOT NULL
                   ORDER BY y.at DESC, y.n DESC LIMIT 1) o ON true
LEFT JOIN releases r ON r.org_id = x.org_id AND r.id = h.live_release_id
WHERE x.install_id = sqlc.arg(install_id) ORDER BY x.kind, x.name;

-- name: RunnerAt :one
-- The runner of an install as it was at a time.
SELECT x.id, h.state, h.switch, h.switch_reason, h.online, h.version
FROM runners x
CROSS JOIN LATERAL (SELECT * FROM runner_history y WHERE y.org_id = x.org_id AND y.runner_id = x.id AND y.at <= sqlc.arg(at)
                    ORDER BY y.at DESC, y.n DESC LIMIT 1) h
WHERE x.install_id = sqlc.arg(install_id)::text ORDER BY h.state = 'revoked', h.at DESC LIMIT 1;

-- name: ProposalsOpenAt :many
-- The changes of an install that waited for a decision at a time.
SELECT c.id, c.workflow_id, c.kind, c.proposed_at::timestamptz AS proposed_at, coalesce(x.name, '')::text AS resource
FROM changes c LEFT JOIN resources x ON x.org_id = c.org_id AND x.id = c.resource_id
WHERE c.install_id = sqlc.arg(install_id) AND c.proposed_at <= sqlc.arg(at)::timestamptz
  AND coalesce(least(c.decided_at, c.finished_at), 'infinity') > sqlc.arg(at)::timestamptz
ORDER BY c.proposed_at, c.id;

-- name: StateVersionAt :one
-- The version of the state tree that was the newest at a time.
SELECT version FROM state_versions WHERE install_id = sqlc.arg(install_id) AND version > 0 AND created_at <= sqlc.arg(at) ORDER BY created_at DESC LIMIT 1;

-- name: ListStateVersions :many
-- Versions of the state tree below one, newest first.
SELECT sqlc.embed(v), r.number AS release_number FROM state_versions v
LEFT JOIN releases r ON r.org_id = v.org_id AND r.id = v.release_id
WHERE v.install_id = sqlc.arg(install_id) AND v.version > 0 AND v.version < sqlc.arg(before) ORDER BY v.version DESC LIMIT sqlc.arg(most);
