-- Looks for drift that runners report.

-- name: RunnerResourceOfLook :one
-- The component that a look is about, or the sandbox.
SELECT id, state, coalesce(live_change_id, '')::text AS live_change_id FROM resources
WHERE install_id = sqlc.arg(install_id) AND kind = sqlc.arg(kind) AND name = sqlc.arg(name);

-- name: RunnerAddLook :execrows
-- One look for each resource and tick: another report of it changes nothing.
INSERT INTO drift_looks (org_id, install_id, resource_id, scheduled_at, change_id, run_id, looked_at, error, report)
VALUES (berth.current_org(), sqlc.arg(install_id), sqlc.arg(resource_id), sqlc.arg(scheduled_at), sqlc.arg(change_id), sqlc.arg(run_id),
        sqlc.arg(looked_at), sqlc.narg(error), sqlc.narg(report))
ON CONFLICT (org_id, resource_id, scheduled_at) DO NOTHING;
