-- The stream of events of an org. Triggers write the outbox; the sequencer and
-- retention run in System, the rest inside store.Tx of the org.

-- name: NumberEvents :many
-- Numbers what has none yet; the orgs that got events, and their last numbers.
SELECT f.numbered_org::text AS org_id, f.head::bigint AS head FROM berth.number_events(sqlc.arg(most)::int) f;

-- name: NotePresence :one
-- How many runners have come or gone since the last call.
SELECT berth.note_presence(sqlc.arg(offline_seconds)::float8)::bigint;

-- name: KeepEventPartitions :one
-- The partitions that were dropped; NULL when another replica is at it.
SELECT berth.keep_event_partitions(sqlc.arg(keep_days)::int, sqlc.arg(ahead_days)::int)::text[];

-- name: EventHead :one
-- The number of the org's last event; 0 before the first.
SELECT coalesce((SELECT seq FROM event_heads WHERE org_id = berth.current_org()), 0)::bigint;

-- name: FirstEvent :one
-- The number of the oldest event that is kept; 0 when there is none.
SELECT coalesce((SELECT seq FROM events WHERE org_id = berth.current_org() ORDER BY seq LIMIT 1), 0)::bigint;

-- name: EventsSince :one
-- earlier is an event that was numbered before a time, 0 when none of those is kept;
-- after is the number before the first one that happened at that time or later. A
-- number comes within seconds of the commit, not always in the order of the clock.
WITH kept AS (
    SELECT coalesce((SELECT seq FROM events WHERE org_id = berth.current_org() AND numbered_at < sqlc.arg(at)::timestamptz - interval '1 minute'
                     ORDER BY seq DESC LIMIT 1), 0) AS earlier
)
SELECT kept.earlier::bigint AS earlier,
       coalesce((SELECT e.seq - 1 FROM events e WHERE e.org_id = berth.current_org() AND e.seq > kept.earlier AND e.at >= sqlc.arg(at) ORDER BY e.seq LIMIT 1),
                (SELECT seq FROM event_heads WHERE org_id = berth.current_org()), 0)::bigint AS after
FROM kept;

-- name: EventsBetween :many
-- Events after one number and up to another, in order, that stand in the scope
-- and match the filters; an empty filter lets all pass.
SELECT seq, id, at, kind, customer_id, app_id, install_id, body FROM events
WHERE seq > sqlc.arg(after) AND seq <= sqlc.arg(up_to)
  AND (sqlc.arg(everywhere)::bool OR customer_id = ANY (sqlc.arg(customers)::text[]) OR app_id = ANY (sqlc.arg(apps)::text[]) OR install_id = ANY (sqlc.arg(installs)::text[]))
  AND (cardinality(sqlc.arg(kinds)::text[]) = 0 OR kind = ANY (sqlc.arg(kinds)::text[]))
  AND (sqlc.narg(install_id)::text IS NULL OR install_id = sqlc.narg(install_id))
  AND (sqlc.narg(app_id)::text IS NULL OR app_id = sqlc.narg(app_id))
ORDER BY seq LIMIT sqlc.arg(most);

-- name: EventsOfIncidents :many
-- What tells some incidents in the installs that they reach, in order.
SELECT seq, id, at, kind, customer_id, app_id, install_id, body FROM events
WHERE kind IN ('incident_of_install.opened', 'incident_of_install.closed') AND body ->> 'incident_id' = ANY (sqlc.arg(incident_ids)::text[])
ORDER BY seq;
