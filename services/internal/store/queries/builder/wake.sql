-- Wake-ups: part of the transaction that causes them, worked by the service that
-- owns the rows.

-- name: WakeBuild :exec
-- builder looks at this build: new, cancelled, or its job has ended.
SELECT berth.wake_build(sqlc.arg(build_id)::text);
