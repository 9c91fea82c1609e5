-- What each service's role may do, by operation, column and kind of row.
--
-- Earlier migrations granted whole tables, so a stolen password reached further
-- than the service's statements do: builder could enrol a machine for an
-- install, and runner-api could write the org's chain. From here on a role has
-- what its statements use. testdata/roles.golden lists the result, and
-- docs/reference/database-roles.md says what a stolen password can still do.
--
-- Restrictive policies narrow the rows: they hold in addition to `tenant`. A
-- policy shows itself as an error where it checks the new row (WITH CHECK), and
-- as "no such row" where it hides an old one (USING).

-- +goose Up

-- The oldest schema version whose executables still work with this one. A
-- migration that they cannot live with replaces this function; a service that is
-- older refuses to start.
CREATE FUNCTION berth.oldest_schema() RETURNS bigint
    LANGUAGE sql IMMUTABLE
    RETURN 60::bigint;
GRANT EXECUTE ON FUNCTION berth.oldest_schema() TO berth_ctl, berth_runner, berth_builder, berth_log;

-- Which of River's own migrations ran is for migrations to say.
REVOKE ALL ON river_ctl.river_migration FROM berth_ctl;
REVOKE ALL ON river_builder.river_migration FROM berth_builder;

-- builder: builds, the releases that they complete, and the org's Build Runner.

REVOKE ALL ON orgs, apps, blobs, configs, components, component_revisions, builds, config_items, releases, release_items,
    installs, keys, runners, enrolments, runner_jobs, registry_tokens FROM berth_builder;

GRANT SELECT (org_id, id, name) ON apps TO berth_builder;
-- Locking the app's row, which numbers its releases, takes the right to update
-- some column: this one is only shown.
GRANT UPDATE (display_name) ON apps TO berth_builder;
GRANT SELECT (org_id, digest, body) ON blobs TO berth_builder;
GRANT SELECT (org_id, id, app_id, number, digest) ON configs TO berth_builder;
GRANT SELECT (org_id, id, kind, name) ON components TO berth_builder;
GRANT SELECT (org_id, id, type, build_digest, deploy_digest, spec) ON component_revisions TO berth_builder;
GRANT SELECT (org_id, config_id, component_id, revision_id) ON config_items TO berth_builder;
GRANT SELECT ON builds, releases TO berth_builder;
GRANT UPDATE (source_commit, resolved_digest, state, reused_from, job_id, artifact_repository, artifact_digest, artifact_size_bytes,
    provenance, error, started_at, finished_at) ON builds TO berth_builder;
GRANT INSERT (id, org_id, app_id, number, config_id, made_by, digest) ON releases TO berth_builder;
GRANT INSERT (org_id, release_id, component_id, revision_id, build_id, artifact_repository, artifact_digest) ON release_items TO berth_builder;
GRANT SELECT (org_id, purpose, key_id, public_key, created_at, retired_at) ON keys TO berth_builder;
GRANT SELECT (org_id, id, kind, state, public_key), INSERT (id, org_id, kind, name) ON runners TO berth_builder;
GRANT SELECT (org_id, runner_id, secret_hash, state, expires_at), UPDATE (state, expires_at),
    INSERT (id, org_id, runner_id, secret_hash, replaces, created_by, expires_at) ON enrolments TO berth_builder;
GRANT SELECT (org_id, id, runner_id, state, attempt, result, error, finished_at, cancel_requested_at),
    UPDATE (state, finished_at, cancel_requested_at), INSERT ON runner_jobs TO berth_builder;
GRANT SELECT (org_id, hash, runner_id, actions, expires_at, revoked_at), INSERT (hash, org_id, actions, expires_at), DELETE
    ON registry_tokens TO berth_builder;

CREATE POLICY builder_build_runner ON runners AS RESTRICTIVE TO berth_builder USING (kind = 'build');
CREATE POLICY builder_build_runner ON enrolments AS RESTRICTIVE TO berth_builder
    USING (EXISTS (SELECT FROM runners r WHERE r.org_id = enrolments.org_id AND r.id = runner_id AND r.kind = 'build'));
-- A build changes nothing in any install, so its job names nothing of one.
CREATE POLICY builder_build_jobs ON runner_jobs AS RESTRICTIVE TO berth_builder
    USING (operation = 'build' AND build_id IS NOT NULL)
    WITH CHECK (operation = 'build' AND build_id IS NOT NULL AND NOT mutates
        AND num_nonnulls(install_id, change_id, step_id, workflow_id, action_run_id, resource_id, capsule, fence) = 0
        AND EXISTS (SELECT FROM runners r WHERE r.org_id = runner_jobs.org_id AND r.id = runner_id AND r.kind = 'build'));
CREATE POLICY builder_drops_expired ON registry_tokens AS RESTRICTIVE FOR DELETE TO berth_builder USING (expires_at < now());

-- runner-api: what runners say about themselves, their jobs, logs and states.

REVOKE ALL ON orgs, keys, chain_records, chain_heads, builds, installs, resources, stack_versions, state_versions, changes, workflows,
    action_runs, runners, enrolments, runner_sessions, runner_jobs, leases, tf_states, tf_locks, settings_versions, registry_tokens, alarms,
    log_streams, log_tokens FROM berth_runner;

GRANT SELECT (org_id, id) ON installs TO berth_runner;
GRANT SELECT (org_id, install_id, purpose, key_id, public_key, retired_at), INSERT (id, org_id, install_id, purpose, algorithm, key_id, public_key),
    UPDATE (retired_at) ON keys TO berth_runner;
GRANT SELECT (org_id, chain, seq, hash, body), INSERT (org_id, chain, seq, prev, hash, body) ON chain_records TO berth_runner;
GRANT SELECT (org_id, chain, seq, hash), INSERT (org_id, chain, seq, hash), UPDATE (seq, hash, updated_at) ON chain_heads TO berth_runner;
GRANT SELECT (org_id, id, state, started_at), UPDATE (state, started_at) ON builds TO berth_runner;
GRANT SELECT (org_id, id, fence) ON resources TO berth_runner;
GRANT SELECT (org_id, id, install_id, version, state, phone_home_hash, phone_home_body_digest, outputs, expires_at, phoned_home_at),
    UPDATE (state, phone_home_body_digest, outputs, phoned_home_at) ON stack_versions TO berth_runner;
GRANT SELECT (org_id, id, install_id, key, runner_id, state, exit_code, error, stream_id, started_at, finished_at),
    INSERT (id, org_id, install_id, action, trigger, key, scheduled_at, runner_id, state, created_by),
    UPDATE (runner_id, state, exit_code, outputs, error, stream_id, started_at, finished_at, reported_at) ON action_runs TO berth_runner;
GRANT SELECT (org_id, id, install_id, kind, state, public_key, seal_recipient, epoch, slots, switch),
    UPDATE (state, public_key, seal_recipient, version, trust, facts, epoch, slots, switch, last_seen_at) ON runners TO berth_runner;
GRANT SELECT (org_id, id, runner_id, secret_hash, state, replaces, bound_key, expires_at, alarmed_at),
    UPDATE (state, bound_key, used_at, alarmed_at) ON enrolments TO berth_runner;
GRANT SELECT (org_id, id, runner_id, epoch, token_hash, closed_at, close_reason), INSERT (id, org_id, runner_id, epoch, token_hash, version),
    UPDATE (closed_at, close_reason) ON runner_sessions TO berth_runner;
GRANT SELECT, UPDATE (state, attempt, result, error, leased_at, finished_at) ON runner_jobs TO berth_runner;
GRANT SELECT (org_id, id, job_id, runner_id, session_id, attempt, claim_id, stream_id, state, expires_at),
    INSERT (id, org_id, job_id, runner_id, session_id, attempt, claim_id, stream_id, expires_at),
    UPDATE (session_id, state, expires_at, ended_at, end_reason) ON leases TO berth_runner;
GRANT SELECT (org_id, id, resource_id, serial, lineage, kind, body, digest, job_id, attempt, fence, created_at),
    INSERT (id, org_id, resource_id, serial, lineage, kind, body, digest, summary, job_id, attempt, fence, reason),
    UPDATE (kind, body) ON tf_states TO berth_runner;
GRANT SELECT, INSERT (org_id, resource_id, lock_id, info, job_id, attempt, fence), UPDATE (lock_id, info, job_id, attempt, fence, locked_at), DELETE
    ON tf_locks TO berth_runner;
GRANT SELECT (org_id, install_id, version, envelope) ON settings_versions TO berth_runner;
GRANT SELECT (org_id, runner_id, expires_at, revoked_at), INSERT (hash, org_id, runner_id, session_id, actions, expires_at), UPDATE (revoked_at)
    ON registry_tokens TO berth_runner;
GRANT INSERT (id, org_id, runner_id, kind, subject, detail) ON alarms TO berth_runner;
GRANT SELECT (org_id, id, job_id, run_id, attempt, state), INSERT (id, org_id, install_id, job_id, run_id, attempt), UPDATE (state, finished_at)
    ON log_streams TO berth_runner;
GRANT SELECT (org_id, stream_id, runner_id, revoked_at), INSERT (hash, org_id, stream_id, runner_id, session_id, expires_at), UPDATE (revoked_at)
    ON log_tokens TO berth_runner;

-- A key in use is one that a runner's row names, and who may set that is below.
CREATE POLICY runner_keys_of_runners ON keys AS RESTRICTIVE FOR INSERT TO berth_runner
    WITH CHECK (purpose IN ('runner', 'seal') AND EXISTS (SELECT FROM runners r
        WHERE r.org_id = keys.org_id AND r.install_id IS NOT DISTINCT FROM keys.install_id AND keys.public_key IN (r.public_key, r.seal_recipient)));
CREATE POLICY runner_retires_keys_of_runners ON keys AS RESTRICTIVE FOR UPDATE TO berth_runner
    USING (true)
    WITH CHECK (purpose IN ('runner', 'seal') AND (retired_at IS NOT NULL OR EXISTS (SELECT FROM runners r
        WHERE r.org_id = keys.org_id AND r.install_id IS NOT DISTINCT FROM keys.install_id AND keys.public_key IN (r.public_key, r.seal_recipient))));
-- The org's chain, which is named by the org's id, is ctl-api's alone.
CREATE POLICY runner_chains_of_installs ON chain_records AS RESTRICTIVE TO berth_runner
    USING (EXISTS (SELECT FROM installs i WHERE i.org_id = chain_records.org_id AND i.id = chain));
CREATE POLICY runner_chains_of_installs ON chain_heads AS RESTRICTIVE TO berth_runner
    USING (EXISTS (SELECT FROM installs i WHERE i.org_id = chain_heads.org_id AND i.id = chain));
CREATE POLICY runner_starts_builds ON builds AS RESTRICTIVE FOR UPDATE TO berth_runner
    USING (state = 'queued') WITH CHECK (state = 'running');
CREATE POLICY runner_reports_schedules ON action_runs AS RESTRICTIVE FOR INSERT TO berth_runner
    WITH CHECK (trigger = 'cron' AND num_nonnulls(change_id, workflow_id) = 0);
CREATE POLICY runner_tokens_of_runners ON registry_tokens AS RESTRICTIVE FOR INSERT TO berth_runner
    WITH CHECK (runner_id IS NOT NULL AND (NOT 'push' = ANY (actions)
        OR EXISTS (SELECT FROM runners r WHERE r.org_id = registry_tokens.org_id AND r.id = runner_id AND r.kind = 'build')));

-- Policies see only the new row. What depends on the old one is in triggers.
-- +goose StatementBegin

-- A machine gets into a runner's row by an enrolment that ctl-api or builder
-- opened, never by runner-api alone; another machine takes its place only where
-- the enrolment says so.
CREATE FUNCTION berth.runner_api_updates_runner() RETURNS trigger
    LANGUAGE plpgsql SET search_path = berth, pg_temp AS $$
BEGIN
    IF OLD.state = 'revoked' AND NEW.state <> 'revoked' THEN
        RAISE EXCEPTION 'runner % was revoked and stays so', OLD.id USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NEW.epoch < OLD.epoch THEN
        RAISE EXCEPTION 'the epoch of runner % goes back', OLD.id USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF (NEW.public_key, NEW.seal_recipient) IS DISTINCT FROM (OLD.public_key, OLD.seal_recipient)
        AND NOT EXISTS (SELECT FROM enrolments e
            WHERE e.org_id = NEW.org_id AND e.runner_id = NEW.id AND e.state = 'open' AND e.expires_at > now()
              AND (e.replaces OR OLD.public_key IS NULL OR NEW.public_key = OLD.public_key)) THEN
        RAISE EXCEPTION 'no open enrolment lets runner % have another key', OLD.id USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;

-- A secret is used once, by one key.
CREATE FUNCTION berth.runner_api_updates_enrolment() RETURNS trigger
    LANGUAGE plpgsql SET search_path = berth, pg_temp AS $$
BEGIN
    IF NEW.state <> OLD.state AND NOT (OLD.state = 'open' AND NEW.state = 'used') THEN
        RAISE EXCEPTION 'enrolment % cannot go from % to %', OLD.id, OLD.state, NEW.state USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF OLD.bound_key IS NOT NULL AND NEW.bound_key IS DISTINCT FROM OLD.bound_key THEN
        RAISE EXCEPTION 'enrolment % is bound to a key', OLD.id USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;

-- A job that has ended does not start again; what comes too late is kept with it.
CREATE FUNCTION berth.ended_jobs_stay_ended() RETURNS trigger
    LANGUAGE plpgsql SET search_path = berth, pg_temp AS $$
BEGIN
    IF OLD.state NOT IN ('queued', 'leased') AND NEW.state <> OLD.state THEN
        RAISE EXCEPTION 'job % has ended', OLD.id USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NEW.attempt < OLD.attempt THEN
        RAISE EXCEPTION 'attempts of job % cannot be given back', OLD.id USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;

-- The copy of a chain grows, and its head is a record that is there.
CREATE FUNCTION berth.runner_api_moves_head() RETURNS trigger
    LANGUAGE plpgsql SET search_path = berth, pg_temp AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.seq <= OLD.seq THEN
        RAISE EXCEPTION 'the copy of chain % cannot be cut', OLD.chain USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NOT EXISTS (SELECT FROM chain_records r WHERE r.org_id = NEW.org_id AND r.chain = NEW.chain AND r.seq = NEW.seq AND r.hash = NEW.hash) THEN
        RAISE EXCEPTION 'chain % has no such record', NEW.chain USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER runner_api_updates BEFORE UPDATE ON runners
    FOR EACH ROW WHEN (current_user = 'berth_runner') EXECUTE FUNCTION berth.runner_api_updates_runner();
CREATE TRIGGER runner_api_updates BEFORE UPDATE ON enrolments
    FOR EACH ROW WHEN (current_user = 'berth_runner') EXECUTE FUNCTION berth.runner_api_updates_enrolment();
CREATE TRIGGER ended_jobs_stay_ended BEFORE UPDATE ON runner_jobs
    FOR EACH ROW WHEN (current_user IN ('berth_runner', 'berth_builder')) EXECUTE FUNCTION berth.ended_jobs_stay_ended();
CREATE TRIGGER runner_api_moves_head BEFORE INSERT OR UPDATE ON chain_heads
    FOR EACH ROW WHEN (current_user = 'berth_runner') EXECUTE FUNCTION berth.runner_api_moves_head();

-- log-ingest: streams and chunks, and who may read them.

REVOKE ALL ON orgs, accounts, tokens, grants, installs, runners, leases, runner_sessions, log_streams, log_tokens, log_chunks FROM berth_log;

GRANT SELECT (org_id, name) ON orgs TO berth_log;
GRANT SELECT (id, org_id, kind, name, disabled_at) ON accounts TO berth_log;
GRANT SELECT (id, org_id, account_id, hash, expires_at, last_used_at, revoked_at) ON tokens TO berth_log;
GRANT SELECT ON grants TO berth_log;
GRANT SELECT (id, org_id, customer_id, app_id) ON installs TO berth_log;
GRANT SELECT (hash, org_id, stream_id, expires_at, revoked_at) ON log_tokens TO berth_log;
GRANT SELECT, UPDATE (state, next_seq, head_hash, bytes, lost_lines, total_lines, sha256, late_redaction, finished_at) ON log_streams TO berth_log;
GRANT SELECT, INSERT ON log_chunks TO berth_log;

-- ctl-api reads and moves nearly everything. Who somebody or some machine is,
-- and what was recorded or ordered, it may add to and not rewrite.

REVOKE UPDATE ON orgs, customers, accounts, tokens, grants, keys, configs, components, component_revisions, builds,
    runners, enrolments, runner_jobs FROM berth_ctl;
REVOKE DELETE ON grants FROM berth_ctl;
REVOKE SELECT ON runner_sessions, registry_tokens, tf_locks, tf_states, log_tokens FROM berth_ctl;
REVOKE SELECT (id, org_id, resource_id, serial, lineage, kind, digest, summary, job_id, attempt, fence, reason, created_at) ON tf_states FROM berth_ctl;
REVOKE SELECT (org_id, stream_id, runner_id, session_id, expires_at, revoked_at), UPDATE (revoked_at) ON log_tokens FROM berth_ctl;
REVOKE SELECT, UPDATE (state, finished_at) ON log_streams FROM berth_ctl;
REVOKE UPDATE (state, ended_at, end_reason) ON leases FROM berth_ctl;

GRANT UPDATE (disabled_at) ON accounts TO berth_ctl;
GRANT UPDATE (last_used_at, revoked_at) ON tokens TO berth_ctl;
GRANT UPDATE (tombstoned_at) ON components TO berth_ctl;
-- An upsert that writes what is there, to lock and return it.
GRANT UPDATE (type) ON component_revisions TO berth_ctl;
GRANT UPDATE (cancel_requested_at) ON builds TO berth_ctl;
GRANT UPDATE (state, revoked_at) ON runners TO berth_ctl;
GRANT UPDATE (state) ON enrolments TO berth_ctl;
GRANT UPDATE (state, finished_at, cancel_requested_at) ON runner_jobs TO berth_ctl;
GRANT SELECT (org_id, runner_id, closed_at) ON runner_sessions TO berth_ctl;
GRANT SELECT (org_id, runner_id, revoked_at) ON registry_tokens TO berth_ctl;
GRANT SELECT (org_id, resource_id, fence) ON tf_locks TO berth_ctl;

CREATE POLICY ctl_keys_of_the_org ON keys AS RESTRICTIVE FOR INSERT TO berth_ctl WITH CHECK (purpose NOT IN ('runner', 'seal'));
CREATE POLICY ctl_install_runners ON runners AS RESTRICTIVE FOR INSERT TO berth_ctl WITH CHECK (kind = 'install');
CREATE POLICY ctl_install_jobs ON runner_jobs AS RESTRICTIVE FOR INSERT TO berth_ctl WITH CHECK (operation <> 'build' AND install_id IS NOT NULL);
-- ctl-api writes the org's chain, and beside it how far each install's had come
-- when that was recorded there ("<install>/anchored"); never an install's own.
CREATE POLICY ctl_chain_of_the_org ON chain_records AS RESTRICTIVE FOR INSERT TO berth_ctl WITH CHECK (chain = org_id);
CREATE POLICY ctl_adds_heads ON chain_heads AS RESTRICTIVE FOR INSERT TO berth_ctl WITH CHECK (chain = org_id OR chain LIKE '%/anchored');
CREATE POLICY ctl_moves_heads ON chain_heads AS RESTRICTIVE FOR UPDATE TO berth_ctl USING (chain = org_id OR chain LIKE '%/anchored');
