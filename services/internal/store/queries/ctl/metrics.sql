-- Numbers that runs wrote. All run inside store.Tx of the org. A point is stored after
-- its time, but for a clock that is ahead by the minutes that are allowed: so a time also
-- says which partitions are not looked at.

-- name: ListMetrics :many
-- A page of the series of an install, by name and action, behind the series `after`; all
-- of them, or those of a name, of an action, of a source. Those of the runner have no action.
SELECT * FROM metric_series m
WHERE m.install_id = sqlc.arg(install_id) AND (sqlc.arg(name)::text = '' OR m.name = sqlc.arg(name)) AND (sqlc.arg(action)::text = '' OR m.action = sqlc.arg(action))
  AND (sqlc.arg(source)::text = '' OR (m.action = '') = (sqlc.arg(source)::text = 'runner'))
  AND (sqlc.arg(after)::text = '' OR (m.name, m.action, m.number) > (SELECT a.name, a.action, a.number FROM metric_series a WHERE a.id = sqlc.arg(after) AND a.install_id = m.install_id))
ORDER BY m.name, m.action, m.number LIMIT sqlc.arg(most);

-- name: GetMetric :one
SELECT * FROM metric_series WHERE id = sqlc.arg(id) AND install_id = sqlc.arg(install_id);

-- name: RecentPoints :many
-- The newest values of series, newest first: `most` of each, none from before `since`.
SELECT s.number::bigint AS series, p.value
FROM (SELECT unnest(sqlc.arg(series)::bigint[]) AS number) s
CROSS JOIN LATERAL (
    SELECT p.value, p.at FROM metric_points p
    WHERE p.series = s.number AND p.at >= sqlc.arg(since)::timestamptz AND p.stored_at >= sqlc.arg(since)::timestamptz - interval '1 hour'
    ORDER BY p.at DESC LIMIT sqlc.arg(most)
) p
ORDER BY s.number, p.at DESC;

-- name: ListPoints :many
-- A page of the points of a series in a time, newest first, behind a point.
SELECT p.at, p.value, p.run_id FROM metric_points p
WHERE p.series = sqlc.arg(series) AND p.at >= sqlc.arg(since)::timestamptz AND p.at < sqlc.arg(until)::timestamptz
  AND p.stored_at >= sqlc.arg(since)::timestamptz - interval '1 hour'
  AND (sqlc.narg(after_at)::timestamptz IS NULL OR (p.at, p.run_id) < (sqlc.narg(after_at)::timestamptz, sqlc.arg(after_run)::text))
ORDER BY p.at DESC, p.run_id DESC LIMIT sqlc.arg(most);

-- name: ListSteps :many
-- The same in steps of equal length: of each step in which there are points the last
-- value, the least, the most, the mean, and how many there are.
SELECT date_bin(make_interval(secs => sqlc.arg(step)::float8), p.at, 'epoch'::timestamptz)::timestamptz AS at,
       ((array_agg(p.value ORDER BY p.at DESC, p.run_id DESC))[1])::float8 AS last, min(p.value)::float8 AS least, max(p.value)::float8 AS greatest,
       avg(p.value)::float8 AS mean, count(*)::bigint AS points
FROM metric_points p
WHERE p.series = sqlc.arg(series) AND p.at >= sqlc.arg(since)::timestamptz AND p.at < sqlc.arg(until)::timestamptz
  AND p.stored_at >= sqlc.arg(since)::timestamptz - interval '1 hour'
GROUP BY 1 ORDER BY 1 DESC LIMIT sqlc.arg(most);

-- name: MetricsOfRun :many
-- What a run wrote at a time: its action's series with their values then.
SELECT sqlc.embed(s), p.value FROM metric_series s
JOIN metric_points p ON p.series = s.number AND p.at = sqlc.arg(at)::timestamptz AND p.stored_at >= sqlc.arg(at)::timestamptz - interval '1 hour'
WHERE s.install_id = sqlc.arg(install_id) AND s.action = sqlc.arg(action) AND p.run_id = sqlc.arg(run_id)::text
ORDER BY s.name, s.number;

-- name: ClaimMetricExport :many
-- Runs in System. The position behind which the claimant sends; none while another one
-- does, or a pause lasts.
SELECT c.tx::bigint AS tx, c.at::timestamptz AS at, c.series::bigint AS series, c.lost::bigint AS lost
FROM berth.claim_metric_export(sqlc.arg(claimant)::text, sqlc.arg(seconds)::float8) c;

-- name: PointsToExport :many
-- Runs in System. The next points of all orgs behind a position, in its order.
SELECT p.tx::bigint AS tx, p.at::timestamptz AS at, p.series::bigint AS series, p.value::float8 AS value, p.stored_at::timestamptz AS stored_at,
       p.org_id::text AS org_id, p.install_id::text AS install_id, p.install::text AS install, p.app::text AS app, p.customer::text AS customer,
       p.action::text AS action, p.name::text AS name, p.labels::jsonb AS labels, p.kind::text AS kind, p.help::text AS help
FROM berth.points_to_export(sqlc.arg(after_tx)::bigint, sqlc.arg(after_at)::timestamptz, sqlc.arg(after_series)::bigint, sqlc.arg(most)::int) p;

-- name: MetricExportLag :one
-- Runs in System. How many seconds ago the oldest point was stored that was not sent.
SELECT berth.metric_export_lag()::float8;

-- name: KeepMetricExport :one
-- Runs in System. Moves the position and ends the claim; false when another one claimed.
SELECT berth.keep_metric_export(sqlc.arg(claimant)::text, sqlc.arg(tx)::bigint, sqlc.arg(at)::timestamptz, sqlc.arg(series)::bigint, sqlc.arg(told)::bigint,
                                sqlc.arg(pause)::float8)::boolean;
