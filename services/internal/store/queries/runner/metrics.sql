-- Numbers that runs wrote. All run inside store.Tx of the org, in the transaction that
-- takes the result of the run.

-- name: RunnerActionOfRun :one
SELECT action FROM action_runs WHERE id = sqlc.arg(id) AND install_id = sqlc.arg(install_id);

-- name: RunnerNewestSample :one
-- When the newest of the runner's own numbers were written, the epoch without any.
SELECT coalesce(max(last_at), 'epoch')::timestamptz FROM metric_series WHERE install_id = sqlc.arg(install_id) AND action = '';

-- name: RunnerPutSeries :many
-- The series of a run with its values, and the numbers that they have. A new one comes
-- in only while the install has fewer than `most`. The value of an earlier run leaves a
-- newer one as it is. The runner's row is locked: nobody else adds series to its install.
INSERT INTO metric_series (id, org_id, install_id, action, name, labels, labels_key, kind, help, last_value, last_at, last_run)
SELECT k.id, berth.current_org(), sqlc.arg(install_id)::text, sqlc.arg(action)::text, k.name, k.labels, k.labels_key, k.kind, k.help, k.value,
       sqlc.arg(at)::timestamptz, sqlc.arg(run_id)::text
FROM (
    SELECT g.*, s.id IS NOT NULL AS known, row_number() OVER (PARTITION BY s.id IS NOT NULL ORDER BY g.name, g.labels_key) AS place
    FROM (
        SELECT unnest(sqlc.arg(ids)::text[]) AS id, unnest(sqlc.arg(names)::text[]) AS name, unnest(sqlc.arg(labels)::text[])::jsonb AS labels,
               unnest(sqlc.arg(labels_keys)::text[]) AS labels_key, unnest(sqlc.arg(kinds)::text[]) AS kind, unnest(sqlc.arg(helps)::text[]) AS help,
               unnest(sqlc.arg(values_)::float8[]) AS value
    ) g
    LEFT JOIN metric_series s ON s.install_id = sqlc.arg(install_id)::text AND s.action = sqlc.arg(action)::text AND s.name = g.name AND s.labels_key = g.labels_key
) k
WHERE k.known OR k.place <= sqlc.arg(most)::bigint - (SELECT count(*) FROM metric_series x WHERE x.install_id = sqlc.arg(install_id)::text)
ORDER BY k.name, k.labels_key
ON CONFLICT (org_id, install_id, name, action, labels_key) DO UPDATE
SET last_value = CASE WHEN excluded.last_at >= metric_series.last_at THEN excluded.last_value ELSE metric_series.last_value END,
    last_run = CASE WHEN excluded.last_at >= metric_series.last_at THEN excluded.last_run ELSE metric_series.last_run END,
    last_at = greatest(excluded.last_at, metric_series.last_at), kind = excluded.kind, help = excluded.help, stored_at = now()
RETURNING number, name, labels_key;

-- name: RunnerPutPoints :exec
INSERT INTO metric_points (org_id, series, at, value, run_id)
SELECT berth.current_org(), unnest(sqlc.arg(series)::bigint[]), sqlc.arg(at)::timestamptz, unnest(sqlc.arg(values_)::float8[]), sqlc.arg(run_id)::text;

-- name: RunnerSetRunMetrics :exec
-- What a run wrote, and what of it was left out.
UPDATE action_runs SET metrics_at = sqlc.narg(metrics_at), metrics_kept = sqlc.arg(metrics_kept), metrics_error = sqlc.narg(metrics_error)
WHERE id = sqlc.arg(id);
