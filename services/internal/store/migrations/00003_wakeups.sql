-- Wake-ups from one service to another.
--
-- A service has no rights in the River schema of another one, where it could
-- read all arguments. It may only call these functions: each inserts one job of
-- one fixed kind that carries one id. The worker trusts the row behind the id,
-- never the arguments. A wake-up is part of the transaction that caused it, and
-- is never unique: while a job runs, a second one must still be recorded.
--
-- This is what River v0.51 does itself on InsertTx: one row in river_job and a
-- notification on "<schema>.river_insert" that names the queue, sent at commit.

-- +goose Up

GRANT USAGE ON SCHEMA river_ctl, river_builder TO berth_sys;
GRANT INSERT ON river_ctl.river_job, river_builder.river_job TO berth_sys;
GRANT USAGE ON SEQUENCE river_ctl.river_job_id_seq, river_builder.river_job_id_seq TO berth_sys;
-- The index for unique jobs calls it on every insert.
GRANT EXECUTE ON FUNCTION
    river_ctl.river_job_state_in_bitmask(bit, river_ctl.river_job_state),
    river_builder.river_job_state_in_bitmask(bit, river_builder.river_job_state) TO berth_sys;

-- The trace of the transaction that wakes goes on in the worker (package jobs
-- reads the same key).
CREATE FUNCTION berth.wake_metadata() RETURNS jsonb
    LANGUAGE sql STABLE
    RETURN jsonb_strip_nulls(jsonb_build_object('traceparent', nullif(current_setting('berth.traceparent', true), '')));
GRANT EXECUTE ON FUNCTION berth.wake_metadata() TO berth_sys;

-- Rows of this workflow have changed: look what can be done next.
-- +goose StatementBegin
CREATE FUNCTION berth.wake_workflow(workflow_id text) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    INSERT INTO river_ctl.river_job (kind, queue, max_attempts, args, metadata)
    VALUES ('workflow_advance', 'default', 100, jsonb_build_object('workflow_id', workflow_id), berth.wake_metadata());
    SELECT pg_notify('river_ctl.river_insert', '{"queue": "default"}');
$$;
-- +goose StatementEnd
SELECT berth.system_function('berth.wake_workflow(text)', 'berth_ctl', 'berth_runner');

-- Something about the install itself has changed: phone-home, enrolment, health.
-- +goose StatementBegin
CREATE FUNCTION berth.wake_install(install_id text) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    INSERT INTO river_ctl.river_job (kind, queue, max_attempts, args, metadata)
    VALUES ('install_advance', 'default', 100, jsonb_build_object('install_id', install_id), berth.wake_metadata());
    SELECT pg_notify('river_ctl.river_insert', '{"queue": "default"}');
$$;
-- +goose StatementEnd
SELECT berth.system_function('berth.wake_install(text)', 'berth_ctl', 'berth_runner');

-- This build is new, was cancelled, or its job has ended.
-- +goose StatementBegin
CREATE FUNCTION berth.wake_build(build_id text) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    INSERT INTO river_builder.river_job (kind, queue, max_attempts, args, metadata)
    VALUES ('build_advance', 'default', 100, jsonb_build_object('build_id', build_id), berth.wake_metadata());
    SELECT pg_notify('river_builder.river_insert', '{"queue": "default"}');
$$;
-- +goose StatementEnd
SELECT berth.system_function('berth.wake_build(text)', 'berth_ctl', 'berth_runner', 'berth_builder');
