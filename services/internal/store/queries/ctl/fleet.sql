-- What the control plane looks after, counted for metrics.

-- name: FleetCounts :many
SELECT f.name::text AS name, f.kind::text AS kind, f.state::text AS state, f.value::float8 AS value
FROM berth.fleet_counts(sqlc.arg(offline_seconds)::float8) f;
