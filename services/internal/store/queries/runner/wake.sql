-- Wake-ups: part of the transaction that causes them, worked by the service that
-- owns the rows.

-- name: WakeWorkflow :exec
-- ctl-api looks what this workflow can do next.
SELECT berth.wake_workflow(sqlc.arg(workflow_id)::text);

-- name: WakeInstall :exec
-- ctl-api looks at the install itself: phone-home, enrolment, health.
SELECT berth.wake_install(sqlc.arg(install_id)::text);

-- name: WakeBuild :exec
-- builder looks at this build: new, cancelled, or its job has ended.
SELECT berth.wake_build(sqlc.arg(build_id)::text);
