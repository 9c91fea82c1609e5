-- Runners: identity, sessions, jobs, leases, Terraform states, settings.

-- +goose Up

-- epoch counts sessions; a request under an older epoch is refused.
CREATE TABLE runners (
    id             text PRIMARY KEY,
    org_id         text NOT NULL REFERENCES orgs,
    install_id     text,
    kind           text NOT NULL CHECK (kind IN ('install', 'build')),
    name           text NOT NULL,
    state          text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'active', 'revoked')),
    public_key     text,
    seal_recipient text,
    version        text NOT NULL DEFAULT '',
    trust          text NOT NULL DEFAULT 'development' CHECK (trust IN ('development', 'isolated')),
    facts          jsonb NOT NULL DEFAULT '{}',
    epoch          bigint NOT NULL DEFAULT 0,
    slots          int NOT NULL DEFAULT 0,
    switch         text NOT NULL DEFAULT 'run' CHECK (switch IN ('run', 'pause', 'read_only', 'stop_now', 'sever')),
    last_seen_at   timestamptz,
    created_at     timestamptz NOT NULL DEFAULT now(),
    revoked_at     timestamptz,
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id),
    CONSTRAINT runners_install CHECK ((kind = 'install') = (install_id IS NOT NULL))
);
CREATE UNIQUE INDEX runners_of_install ON runners (org_id, install_id) WHERE state <> 'revoked';
CREATE UNIQUE INDEX runners_build ON runners (org_id) WHERE kind = 'build' AND state <> 'revoked';

-- A single-use secret that binds to the first key that uses it. replaces: the
-- customer consented that the machine before it is gone.
CREATE TABLE enrolments (
    id          text PRIMARY KEY,
    org_id      text NOT NULL REFERENCES orgs,
    runner_id   text NOT NULL,
    secret_hash bytea NOT NULL,
    state       text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'used', 'expired')),
    replaces    boolean NOT NULL DEFAULT false,
    bound_key   text,
    created_by  text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    expires_at  timestamptz NOT NULL,
    used_at     timestamptz,
    alarmed_at  timestamptz,
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, runner_id) REFERENCES runners (org_id, id)
);
CREATE UNIQUE INDEX enrolments_secret ON enrolments (secret_hash);

CREATE TABLE runner_sessions (
    id           text PRIMARY KEY,
    org_id       text NOT NULL REFERENCES orgs,
    runner_id    text NOT NULL,
    epoch        bigint NOT NULL,
    token_hash   bytea NOT NULL,
    version      text NOT NULL DEFAULT '',
    opened_at    timestamptz NOT NULL DEFAULT now(),
    closed_at    timestamptz,
    close_reason text,
    UNIQUE (org_id, id),
    UNIQUE (org_id, runner_id, epoch),
    FOREIGN KEY (org_id, runner_id) REFERENCES runners (org_id, id)
);
CREATE UNIQUE INDEX runner_sessions_token ON runner_sessions (token_hash);

-- spec is a jobspec.Spec, result a jobspec.Result. mutates: needs an exclusive
-- grant, so fence and capsule are set. attempt counts leases that were granted.
CREATE TABLE runner_jobs (
    id                  text PRIMARY KEY,
    org_id              text NOT NULL REFERENCES orgs,
    runner_id           text NOT NULL,
    install_id          text,
    build_id            text,
    change_id           text,
    step_id             text,
    workflow_id         text,
    action_run_id       text,
    resource_id         text,
    kind                text NOT NULL,
    operation           text NOT NULL,
    mutates             boolean NOT NULL DEFAULT false,
    state               text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'leased', 'succeeded', 'failed', 'refused', 'cancelled')),
    spec                jsonb NOT NULL,
    capsule             jsonb,
    fence               bigint,
    attempt             int NOT NULL DEFAULT 0,
    timeout_seconds     int NOT NULL,
    trace               jsonb NOT NULL DEFAULT '{}',
    result              jsonb,
    error               text,
    queued_at           timestamptz NOT NULL DEFAULT now(),
    leased_at           timestamptz,
    finished_at         timestamptz,
    cancel_requested_at timestamptz,
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, runner_id) REFERENCES runners (org_id, id),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id),
    FOREIGN KEY (org_id, build_id) REFERENCES builds (org_id, id),
    FOREIGN KEY (org_id, change_id) REFERENCES changes (org_id, id),
    FOREIGN KEY (org_id, step_id) REFERENCES steps (org_id, id),
    FOREIGN KEY (org_id, resource_id) REFERENCES resources (org_id, id),
    CONSTRAINT runner_jobs_grant CHECK (NOT mutates OR fence IS NOT NULL)
);
CREATE INDEX runner_jobs_queue ON runner_jobs (org_id, runner_id, queued_at, id) WHERE state = 'queued';
CREATE INDEX runner_jobs_leased ON runner_jobs (org_id, runner_id) WHERE state = 'leased';

-- active: granted and renewed. lost: expired, may be resumed while nothing
-- newer was granted. ended: finished, or its attempt was shown dead.
CREATE TABLE leases (
    id         text PRIMARY KEY,
    org_id     text NOT NULL REFERENCES orgs,
    job_id     text NOT NULL,
    runner_id  text NOT NULL,
    session_id text NOT NULL,
    attempt    int NOT NULL,
    claim_id   text NOT NULL,
    stream_id  text NOT NULL,
    state      text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'lost', 'ended')),
    granted_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    ended_at   timestamptz,
    end_reason text,
    UNIQUE (org_id, id),
    UNIQUE (org_id, job_id, attempt),
    FOREIGN KEY (org_id, job_id) REFERENCES runner_jobs (org_id, id),
    FOREIGN KEY (org_id, runner_id) REFERENCES runners (org_id, id),
    FOREIGN KEY (org_id, session_id) REFERENCES runner_sessions (org_id, id)
);
CREATE INDEX leases_claim ON leases (org_id, runner_id, claim_id);
CREATE INDEX leases_expiry ON leases (expires_at) WHERE state = 'active';
CREATE UNIQUE INDEX leases_one_open ON leases (org_id, job_id) WHERE state IN ('active', 'lost');

-- Terraform states, ciphertext only. One current row per resource; a write that
-- came too late is kept as orphaned evidence, the older ones without a body.
CREATE TABLE tf_states (
    id          text PRIMARY KEY,
    org_id      text NOT NULL REFERENCES orgs,
    resource_id text NOT NULL,
    serial      bigint NOT NULL,
    lineage     text NOT NULL,
    kind        text NOT NULL DEFAULT 'current' CHECK (kind IN ('current', 'superseded', 'orphaned')),
    body        bytea,
    digest      text NOT NULL,
    summary     jsonb NOT NULL DEFAULT '{}',
    job_id      text NOT NULL,
    attempt     int NOT NULL,
    fence       bigint NOT NULL,
    reason      text NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL DEFAULT now(),
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, resource_id) REFERENCES resources (org_id, id),
    FOREIGN KEY (org_id, job_id) REFERENCES runner_jobs (org_id, id),
    CONSTRAINT tf_states_body CHECK (body IS NOT NULL OR kind = 'orphaned')
);
CREATE UNIQUE INDEX tf_states_current ON tf_states (org_id, resource_id) WHERE kind = 'current';
CREATE INDEX tf_states_orphaned ON tf_states (org_id, resource_id, created_at, id) WHERE kind = 'orphaned';

CREATE TABLE tf_locks (
    org_id      text NOT NULL REFERENCES orgs,
    resource_id text NOT NULL,
    lock_id     text NOT NULL,
    info        jsonb NOT NULL,
    job_id      text NOT NULL,
    attempt     int NOT NULL,
    fence       bigint NOT NULL,
    locked_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, resource_id),
    FOREIGN KEY (org_id, resource_id) REFERENCES resources (org_id, id),
    FOREIGN KEY (org_id, job_id) REFERENCES runner_jobs (org_id, id)
);

-- Signed settings of an install, append-only; the runner refuses to go back.
CREATE TABLE settings_versions (
    org_id     text NOT NULL REFERENCES orgs,
    install_id text NOT NULL,
    version    bigint NOT NULL,
    digest     text NOT NULL,
    envelope   jsonb NOT NULL,
    expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, install_id, version),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id)
);

-- Short-lived credentials for the org's registry.
CREATE TABLE registry_tokens (
    hash       bytea PRIMARY KEY,
    org_id     text NOT NULL REFERENCES orgs,
    runner_id  text,
    session_id text,
    actions    text[] NOT NULL,
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (org_id, runner_id) REFERENCES runners (org_id, id)
);

-- What runner-api saw that must end in the org's chain, which only ctl-api can
-- sign: it records them there and says so in recorded_at. subject is what an
-- alarm is about; about one thing there is one alarm of a kind. detail holds
-- ids, numbers and digests, since chains are shown to others.
CREATE TABLE alarms (
    id          text PRIMARY KEY,
    org_id      text NOT NULL REFERENCES orgs,
    runner_id   text NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('late_result', 'enrolment', 'chain_fork')),
    subject     text NOT NULL,
    detail      jsonb NOT NULL DEFAULT '{}',
    created_at  timestamptz NOT NULL DEFAULT now(),
    recorded_at timestamptz,
    UNIQUE (org_id, id),
    UNIQUE (org_id, runner_id, kind, subject),
    FOREIGN KEY (org_id, runner_id) REFERENCES runners (org_id, id)
);
CREATE INDEX alarms_unrecorded ON alarms (org_id, runner_id) WHERE recorded_at IS NULL;

SELECT berth.tenant_table('runners');
SELECT berth.tenant_table('enrolments');
SELECT berth.tenant_table('runner_sessions');
SELECT berth.tenant_table('runner_jobs');
SELECT berth.tenant_table('leases');
SELECT berth.tenant_table('tf_states');
SELECT berth.tenant_table('tf_locks');
SELECT berth.tenant_table('settings_versions');
SELECT berth.tenant_table('registry_tokens');
SELECT berth.tenant_table('alarms');

GRANT SELECT, INSERT, UPDATE ON runners, enrolments, runner_jobs TO berth_ctl;
GRANT SELECT ON leases, runner_sessions, tf_locks TO berth_ctl;
GRANT SELECT (id, org_id, resource_id, serial, lineage, kind, digest, summary, job_id, attempt, fence, reason, created_at) ON tf_states TO berth_ctl;
-- The next grant on a resource frees the lock that a dead attempt left.
GRANT DELETE ON tf_locks TO berth_ctl;
GRANT UPDATE (closed_at, close_reason) ON runner_sessions TO berth_ctl;
GRANT UPDATE (state, ended_at, end_reason) ON leases TO berth_ctl;
GRANT UPDATE (revoked_at) ON registry_tokens TO berth_ctl;
GRANT SELECT ON registry_tokens TO berth_ctl;
GRANT SELECT, INSERT ON settings_versions TO berth_ctl;
GRANT SELECT, UPDATE (recorded_at) ON alarms TO berth_ctl;

GRANT SELECT, UPDATE ON runners, enrolments, runner_jobs TO berth_runner;
GRANT SELECT, INSERT, UPDATE ON runner_sessions, leases, tf_states TO berth_runner;
GRANT SELECT, INSERT, UPDATE, DELETE ON tf_locks TO berth_runner;
GRANT SELECT ON settings_versions TO berth_runner;
GRANT SELECT, INSERT, UPDATE ON registry_tokens TO berth_runner;
GRANT INSERT ON alarms TO berth_runner;
-- A machine that was replaced leaves its keys behind: runner-api retires them,
-- and no others, not the org's dispatch key and not a customer's.
GRANT UPDATE (retired_at) ON keys TO berth_runner;
-- +goose StatementBegin
CREATE FUNCTION berth.runner_retires_only_its_kind() RETURNS trigger
    LANGUAGE plpgsql SET search_path = berth, pg_temp AS $$
BEGIN
    IF OLD.purpose NOT IN ('runner', 'seal') THEN
        RAISE EXCEPTION 'runner-api may not retire a key of purpose %', OLD.purpose USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER keys_runner_retires BEFORE UPDATE ON keys
    FOR EACH ROW WHEN (current_user = 'berth_runner') EXECUTE FUNCTION berth.runner_retires_only_its_kind();

GRANT SELECT, INSERT, UPDATE ON runners, enrolments TO berth_builder;
GRANT SELECT, INSERT, UPDATE ON runner_jobs TO berth_builder;
GRANT SELECT, INSERT, UPDATE, DELETE ON registry_tokens TO berth_builder;

GRANT SELECT ON runners, leases, runner_sessions TO berth_log;

GRANT SELECT ON runners, enrolments, runner_sessions, runner_jobs, leases, registry_tokens, settings_versions TO berth_sys;
GRANT UPDATE (last_seen_at) ON runners TO berth_sys;

-- org_of names the org that an id belongs to, and nothing else. It is how a
-- worker or a runner request, which starts from an id, gets to the org whose
-- rows it may then read. NULL when there is no such id.
-- +goose StatementBegin
CREATE FUNCTION berth.org_of(object_id text) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = berth, pg_temp AS $$
DECLARE
    found text;
BEGIN
    CASE split_part(object_id, '_', 1)
        WHEN 'org' THEN SELECT org_id INTO found FROM orgs WHERE org_id = object_id;
        WHEN 'wfl' THEN SELECT org_id INTO found FROM workflows WHERE id = object_id;
        WHEN 'stp' THEN SELECT org_id INTO found FROM steps WHERE id = object_id;
        WHEN 'chg' THEN SELECT org_id INTO found FROM changes WHERE id = object_id;
        WHEN 'bld' THEN SELECT org_id INTO found FROM builds WHERE id = object_id;
        WHEN 'ins' THEN SELECT org_id INTO found FROM installs WHERE id = object_id;
        WHEN 'rnr' THEN SELECT org_id INTO found FROM runners WHERE id = object_id;
        WHEN 'job' THEN SELECT org_id INTO found FROM runner_jobs WHERE id = object_id;
        WHEN 'ses' THEN SELECT org_id INTO found FROM runner_sessions WHERE id = object_id;
        WHEN 'stk' THEN SELECT org_id INTO found FROM stack_versions WHERE id = object_id;
        ELSE found := NULL;
    END CASE;
    RETURN found;
END $$;

-- org_of_secret names the org that the hash of a credential belongs to. kind is
-- one of token, session, enrolment, stack, registry.
CREATE FUNCTION berth.org_of_secret(kind text, secret_hash bytea) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = berth, pg_temp AS $$
DECLARE
    found text;
BEGIN
    CASE kind
        WHEN 'token' THEN SELECT org_id INTO found FROM tokens t WHERE t.hash = $2;
        WHEN 'session' THEN SELECT org_id INTO found FROM runner_sessions s WHERE s.token_hash = $2;
        WHEN 'enrolment' THEN SELECT org_id INTO found FROM enrolments e WHERE e.secret_hash = $2;
        WHEN 'stack' THEN SELECT org_id INTO found FROM stack_versions v WHERE v.phone_home_hash = $2;
        WHEN 'registry' THEN SELECT org_id INTO found FROM registry_tokens r WHERE r.hash = $2;
        ELSE found := NULL;
    END CASE;
    RETURN found;
END $$;

-- expired_leases lists active leases whose time is over, as (org, lease) pairs
-- in one array of 'org lease' strings, oldest first; next_lease_expiry says
-- when the next one would be.
CREATE FUNCTION berth.expired_leases(most int) RETURNS text[]
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = berth, pg_temp AS $$
    SELECT coalesce(array_agg(x.org_id || ' ' || x.id), '{}') FROM (
        SELECT org_id, id FROM leases WHERE state = 'active' AND expires_at < now()
        ORDER BY expires_at LIMIT most) x
$$;
CREATE FUNCTION berth.next_lease_expiry() RETURNS timestamptz
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = berth, pg_temp AS $$
    SELECT min(expires_at) FROM leases WHERE state = 'active'
$$;

-- open_work lists what a service must look at after it was away: open
-- workflows, builds not finished, builders' runners. kind: workflow, build,
-- build_runner, org, install.
CREATE FUNCTION berth.open_work(kind text) RETURNS text[]
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = berth, pg_temp AS $$
DECLARE
    found text[];
BEGIN
    CASE kind
        WHEN 'workflow' THEN SELECT array_agg(id) INTO found FROM workflows WHERE state IN ('queued', 'running', 'waiting');
        WHEN 'build' THEN SELECT array_agg(id) INTO found FROM builds WHERE state IN ('queued', 'running');
        WHEN 'build_runner' THEN SELECT array_agg(id) INTO found FROM runners r WHERE r.kind = 'build' AND r.state <> 'revoked';
        WHEN 'org' THEN SELECT array_agg(org_id) INTO found FROM orgs;
        WHEN 'install' THEN SELECT array_agg(id) INTO found FROM installs WHERE forgotten_at IS NULL;
        ELSE found := NULL;
    END CASE;
    RETURN coalesce(found, '{}');
END $$;

-- runners_present writes that these runners were seen, each at most every
-- fresh_seconds, and tells of each what a lost notification would have told:
-- whether it still is the runner that it was, whether work waits, and the
-- version of its settings. Waiting runners of all orgs cost this one statement.
-- A row that somebody else has locked is written the next time.
CREATE FUNCTION berth.runners_present(ids text[], fresh_seconds float8)
    RETURNS TABLE (id text, epoch bigint, active boolean, queued boolean, settings_version bigint)
    LANGUAGE sql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
    WITH late AS (
        SELECT r.id FROM runners r
        WHERE r.id = ANY (ids)
          AND (r.last_seen_at IS NULL OR r.last_seen_at < now() - make_interval(secs => fresh_seconds))
        ORDER BY r.id
        FOR NO KEY UPDATE SKIP LOCKED
    ), seen AS (
        UPDATE runners r SET last_seen_at = now() FROM late WHERE r.id = late.id
    )
    SELECT r.id, r.epoch, r.state = 'active',
           EXISTS (SELECT FROM runner_jobs j
                   WHERE j.org_id = r.org_id AND j.runner_id = r.id AND j.state = 'queued' AND j.cancel_requested_at IS NULL),
           coalesce((SELECT max(v.version) FROM settings_versions v
                     WHERE v.org_id = r.org_id AND v.install_id = r.install_id), 0)
    FROM runners r WHERE r.id = ANY (ids)
$$;

-- Something of the org has changed that is of none of its installs, such as an
-- alarm of its Build Runner. It is the same job: ctl-api looks after an install
-- or an org, as the id says.
CREATE FUNCTION berth.wake_org(org_id text) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT berth.wake_install(org_id)
$$;
-- +goose StatementEnd
SELECT berth.system_function('berth.runners_present(text[], float8)', 'berth_runner');
SELECT berth.system_function('berth.wake_org(text)', 'berth_runner');

ALTER FUNCTION berth.org_of(text) OWNER TO berth_sys;
ALTER FUNCTION berth.org_of_secret(text, bytea) OWNER TO berth_sys;
ALTER FUNCTION berth.expired_leases(int) OWNER TO berth_sys;
ALTER FUNCTION berth.next_lease_expiry() OWNER TO berth_sys;
ALTER FUNCTION berth.open_work(text) OWNER TO berth_sys;
REVOKE ALL ON FUNCTION berth.org_of(text), berth.org_of_secret(text, bytea), berth.expired_leases(int), berth.next_lease_expiry(), berth.open_work(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION berth.org_of(text) TO berth_ctl, berth_runner, berth_builder, berth_log;
GRANT EXECUTE ON FUNCTION berth.org_of_secret(text, bytea) TO berth_ctl, berth_runner, berth_builder, berth_log;
GRANT EXECUTE ON FUNCTION berth.expired_leases(int), berth.next_lease_expiry() TO berth_runner;
GRANT EXECUTE ON FUNCTION berth.open_work(text) TO berth_ctl, berth_builder;
