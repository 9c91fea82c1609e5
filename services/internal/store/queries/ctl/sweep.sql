-- What the sweep looks at, of all orgs and before any org is set.

-- name: StuckWorkflows :one
-- Open workflows that may have lost a wake-up: berth.stuck_workflows.
SELECT berth.stuck_workflows()::text[];

-- name: UnfinishedBulks :many
SELECT b.org_id::text AS org_id, b.id::text AS id FROM berth.unfinished_bulks() b;

-- name: InstallsUnsigned :many
-- Installs whose signed settings should have been renewed: berth.installs_unsigned.
SELECT i.org_id::text AS org_id, i.id::text AS id FROM berth.installs_unsigned(sqlc.arg(within_seconds)::float8) i;
