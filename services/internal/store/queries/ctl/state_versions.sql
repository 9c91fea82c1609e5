-- The versions of an install's state tree. All run inside store.Tx of the org.

-- name: InsertStateVersion :exec
-- It is of this moment, after what its transaction has done already: that explains it.
INSERT INTO state_versions (org_id, install_id, version, tree, inputs_version, variables_version, seal_recipient, release_id, cause, created_at)
VALUES (berth.current_org(), sqlc.arg(install_id), sqlc.arg(version), sqlc.arg(tree), sqlc.arg(inputs_version), sqlc.arg(variables_version),
    sqlc.narg(seal_recipient), sqlc.narg(release_id), sqlc.arg(cause), clock_timestamp());

-- name: SetInstallStateVersion :exec
UPDATE installs SET state_version = sqlc.arg(version) WHERE id = sqlc.arg(id);

-- name: LastActionRuns :many
-- The last run of each action that ended well or badly, for the tree. Of the runs by
-- schedule only those of the given actions: a check would make a version each time.
-- Nothing declares a script that is part of no release, so no template reads what it gave.
SELECT DISTINCT ON (action) * FROM action_runs
WHERE install_id = sqlc.arg(install_id) AND state IN ('succeeded', 'failed') AND trigger <> 'run_script'
  AND (trigger <> 'cron' OR action = ANY(sqlc.arg(unattended)::text[]))
ORDER BY action, created_at DESC;
