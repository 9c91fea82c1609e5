-- What an install was at any time, and what happened to it.
--
-- Triggers write a row into a history in the transaction that changes an install, a
-- resource or a runner, so that neither is there without the other. Rows are added,
-- never changed. The timeline is what of the org's stream a person asks for later:
-- the sequencer copies it when it numbers events, and no retention takes it away.

-- +goose Up

-- What an install was set to, and by whom; actor is null where nobody asked for it.
CREATE TABLE install_history (
    org_id          text NOT NULL REFERENCES orgs,
    install_id      text NOT NULL,
    n               bigint GENERATED ALWAYS AS IDENTITY,
    at              timestamptz NOT NULL DEFAULT clock_timestamp(),
    name            text NOT NULL,
    state           text NOT NULL,
    approval_option text NOT NULL,
    approval_hours  int NOT NULL,
    labels          jsonb NOT NULL,
    toggles         jsonb NOT NULL,
    release_id      text,
    inputs_version  int NOT NULL,
    actor           text,
    PRIMARY KEY (org_id, install_id, at, n),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id)
);

-- What a resource was. outputs is null where they stayed as the row before has them.
CREATE TABLE resource_history (
    org_id               text NOT NULL REFERENCES orgs,
    resource_id          text NOT NULL,
    n                    bigint GENERATED ALWAYS AS IDENTITY,
    at                   timestamptz NOT NULL DEFAULT clock_timestamp(),
    type                 text NOT NULL,
    state                text NOT NULL,
    health               text NOT NULL,
    drift                text NOT NULL,
    live_release_id      text,
    live_artifact_digest text,
    live_inputs_version  int,
    live_change_id       text,
    outputs              jsonb,
    PRIMARY KEY (org_id, resource_id, at, n),
    FOREIGN KEY (org_id, resource_id) REFERENCES resources (org_id, id)
);
CREATE INDEX resource_history_outputs ON resource_history (org_id, resource_id, at, n) WHERE outputs IS NOT NULL;

-- What the runner of an install was, with the customer's switch.
CREATE TABLE runner_history (
    org_id        text NOT NULL REFERENCES orgs,
    runner_id     text NOT NULL,
    n             bigint GENERATED ALWAYS AS IDENTITY,
    at            timestamptz NOT NULL DEFAULT clock_timestamp(),
    state         text NOT NULL,
    switch        text NOT NULL,
    switch_reason text,
    online        boolean NOT NULL,
    version       text NOT NULL,
    PRIMARY KEY (org_id, runner_id, at, n),
    FOREIGN KEY (org_id, runner_id) REFERENCES runners (org_id, id)
);

-- Events of installs, and of their apps (install_id is null), with their numbers in
-- the org's stream. It stays when the stream's partitions are dropped.
CREATE TABLE timeline (
    org_id     text NOT NULL REFERENCES orgs,
    seq        bigint NOT NULL,
    at         timestamptz NOT NULL,
    kind       text NOT NULL,
    app_id     text,
    install_id text,
    body       jsonb NOT NULL,
    PRIMARY KEY (org_id, seq)
);
CREATE INDEX timeline_of_install ON timeline (org_id, install_id, at, seq);
CREATE INDEX timeline_of_app ON timeline (org_id, app_id, at, seq) WHERE install_id IS NULL;

SELECT berth.tenant_table('install_history');
SELECT berth.tenant_table('resource_history');
SELECT berth.tenant_table('runner_history');
SELECT berth.tenant_table('timeline');
GRANT INSERT ON install_history, resource_history, runner_history, timeline TO berth_sys;
GRANT SELECT ON install_history, resource_history, runner_history, timeline TO berth_ctl;

-- The names of all inputs that differ from the version before, also of sensitive
-- ones; ctl-api, which can open these, writes it. Null in rows of an older release.
ALTER TABLE install_inputs ADD COLUMN changed text[];
GRANT SELECT (changed, overrides) ON install_inputs TO berth_sys;

-- What proposals were open at a time.
CREATE INDEX changes_proposed_at ON changes (org_id, install_id, proposed_at) WHERE proposed_at IS NOT NULL;
-- The version of the state that was the newest at a time.
CREATE INDEX state_versions_at ON state_versions (org_id, install_id, created_at) WHERE version > 0;

-- +goose StatementBegin
CREATE FUNCTION berth.remember_install() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    INSERT INTO install_history (org_id, install_id, name, state, approval_option, approval_hours, labels, toggles, release_id, inputs_version, actor)
    VALUES (NEW.org_id, NEW.id, NEW.name, NEW.state, NEW.approval_option, NEW.approval_hours, NEW.labels, NEW.toggles, NEW.release_id, NEW.inputs_version,
        CASE TG_OP WHEN 'INSERT' THEN NEW.created_by ELSE nullif(current_setting('berth.actor', true), '') END);
    RETURN NULL;
END $$;

CREATE FUNCTION berth.remember_resource() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
DECLARE
    outputs jsonb := NEW.outputs;
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.outputs = OLD.outputs THEN
        outputs := NULL;
    END IF;
    INSERT INTO resource_history (org_id, resource_id, type, state, health, drift, live_release_id, live_artifact_digest, live_inputs_version, live_change_id, outputs)
    VALUES (NEW.org_id, NEW.id, NEW.type, NEW.state, NEW.health, NEW.drift, NEW.live_release_id, NEW.live_artifact_digest, NEW.live_inputs_version,
        NEW.live_change_id, outputs);
    RETURN NULL;
END $$;

CREATE FUNCTION berth.remember_runner() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    INSERT INTO runner_history (org_id, runner_id, state, switch, switch_reason, online, version)
    VALUES (NEW.org_id, NEW.id, NEW.state, NEW.switch, NEW.switch_reason, NEW.online, NEW.version);
    RETURN NULL;
END $$;
-- +goose StatementEnd
SELECT berth.system_function(fn::regprocedure, VARIADIC '{}'::name[])
FROM unnest(ARRAY['berth.remember_install()', 'berth.remember_resource()', 'berth.remember_runner()']) AS fn;

CREATE TRIGGER remember_new AFTER INSERT ON installs FOR EACH ROW EXECUTE FUNCTION berth.remember_install();
CREATE TRIGGER remember AFTER UPDATE ON installs FOR EACH ROW
    WHEN ((OLD.name, OLD.state, OLD.approval_option, OLD.approval_hours, OLD.labels, OLD.toggles, OLD.release_id, OLD.inputs_version)
        IS DISTINCT FROM (NEW.name, NEW.state, NEW.approval_option, NEW.approval_hours, NEW.labels, NEW.toggles, NEW.release_id, NEW.inputs_version))
    EXECUTE FUNCTION berth.remember_install();
CREATE TRIGGER remember_new AFTER INSERT ON resources FOR EACH ROW EXECUTE FUNCTION berth.remember_resource();
CREATE TRIGGER remember AFTER UPDATE ON resources FOR EACH ROW
    WHEN ((OLD.type, OLD.state, OLD.health, OLD.drift, OLD.live_release_id, OLD.live_artifact_digest, OLD.live_inputs_version, OLD.live_change_id, OLD.outputs)
        IS DISTINCT FROM (NEW.type, NEW.state, NEW.health, NEW.drift, NEW.live_release_id, NEW.live_artifact_digest, NEW.live_inputs_version, NEW.live_change_id, NEW.outputs))
    EXECUTE FUNCTION berth.remember_resource();
CREATE TRIGGER remember_new AFTER INSERT ON runners FOR EACH ROW WHEN (NEW.install_id IS NOT NULL) EXECUTE FUNCTION berth.remember_runner();
CREATE TRIGGER remember AFTER UPDATE ON runners FOR EACH ROW
    WHEN (NEW.install_id IS NOT NULL AND (OLD.state, OLD.switch, OLD.switch_reason, OLD.online, OLD.version)
        IS DISTINCT FROM (NEW.state, NEW.switch, NEW.switch_reason, NEW.online, NEW.version))
    EXECUTE FUNCTION berth.remember_runner();

-- History begins with what there is now.
INSERT INTO install_history (org_id, install_id, name, state, approval_option, approval_hours, labels, toggles, release_id, inputs_version)
SELECT org_id, id, name, state, approval_option, approval_hours, labels, toggles, release_id, inputs_version FROM installs;
INSERT INTO resource_history (org_id, resource_id, type, state, health, drift, live_release_id, live_artifact_digest, live_inputs_version, live_change_id, outputs)
SELECT org_id, id, type, state, health, drift, live_release_id, live_artifact_digest, live_inputs_version, live_change_id, outputs FROM resources;
INSERT INTO runner_history (org_id, runner_id, state, switch, switch_reason, online, version)
SELECT org_id, id, state, switch, switch_reason, online, version FROM runners WHERE install_id IS NOT NULL;

-- in_timeline says whether an event is part of the timeline. What is decided by a
-- rule because nothing changes, and what nobody skipped, only repeats another entry.
-- +goose StatementBegin
CREATE FUNCTION berth.in_timeline(kind text, body jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE kind
        WHEN 'step.skipped' THEN body ? 'actor'
        WHEN 'change.approved' THEN coalesce(body ->> 'rule', 'person') <> 'read_only'
        WHEN 'drift.changed' THEN body ->> 'from' = 'drifted' OR body ->> 'to' = 'drifted'
        ELSE kind IN (
            'action_run.cancelled', 'action_run.failed', 'action_run.missed', 'action_run.succeeded', 'approval_policy.changed',
            'change.applied', 'change.denied', 'change.failed', 'change.proposed', 'change.refused', 'change.uncertain',
            'check.changed', 'config.created', 'freeze.added', 'freeze.overridden', 'freeze.removed', 'health.changed', 'inputs.changed',
            'install.created', 'install.deprovisioned', 'install.deprovisioning', 'install.forgotten', 'install.live', 'install.paused', 'install.provisioning',
            'install.resumed', 'install.updated',
            'release.created', 'resource.orphaned',
            'runner.enrolled', 'runner.offline', 'runner.online', 'runner.revoked', 'runner.switched',
            'secret.removed', 'secret.set', 'variables.changed', 'workflow.cancelled', 'workflow.failed', 'workflow.queued', 'workflow.succeeded')
    END;
-- +goose StatementEnd
GRANT EXECUTE ON FUNCTION berth.in_timeline(text, jsonb) TO berth_sys;

INSERT INTO timeline (org_id, seq, at, kind, app_id, install_id, body)
SELECT e.org_id, e.seq, e.at, e.kind, e.app_id, e.install_id, e.body FROM events e
LEFT JOIN checks k ON e.kind LIKE 'action_run.%' AND e.body ->> 'trigger' = 'cron' AND k.org_id = e.org_id AND k.install_id = e.install_id AND k.name = e.body ->> 'action'
WHERE berth.in_timeline(e.kind, e.body) AND k.name IS NULL;

-- As in 00280; besides, a skipped step says who skipped it, and what belongs into the
-- timeline is copied there. The scheduled runs of health checks do not: their verdicts
-- do.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION berth.number_events(most int) RETURNS TABLE (numbered_org text, head bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp SET lock_timeout = '5s' AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('berth.number_events', 0));
    RETURN QUERY
    WITH taken AS (
        DELETE FROM event_outbox o WHERE o.n IN (SELECT x.n FROM event_outbox x ORDER BY x.n LIMIT most) RETURNING o.*
    ), numbered AS (
        SELECT t.*, coalesce(h.seq, 0) + row_number() OVER (PARTITION BY t.org_id ORDER BY t.n) AS seq
        FROM taken t LEFT JOIN event_heads h ON h.org_id = t.org_id
    ), readable AS (
        SELECT t.org_id, t.seq, t.id, t.at, t.kind, i.customer_id, coalesce(t.app_id, i.app_id) AS app_id, t.install_id,
               t.body || jsonb_strip_nulls(jsonb_build_object(
                   'install', i.name, 'app', a.name, 'resource', r.name, 'resource_kind', r.kind, 'component', c.name,
                   'actor', coalesce(d.actor, s.skipped_by, t.body ->> 'actor'), 'rule', d.rule)) AS body,
               k.name IS NOT NULL AS scheduled_check
        FROM numbered t
        LEFT JOIN installs i ON i.org_id = t.org_id AND i.id = t.install_id
        LEFT JOIN apps a ON a.org_id = t.org_id AND a.id = coalesce(t.app_id, i.app_id)
        LEFT JOIN resources r ON r.org_id = t.org_id AND r.id = t.body ->> 'resource_id'
        LEFT JOIN components c ON c.org_id = t.org_id AND c.id = t.body ->> 'component_id'
        LEFT JOIN steps s ON t.kind = 'step.skipped' AND s.org_id = t.org_id AND s.id = t.body ->> 'step_id'
        LEFT JOIN checks k ON t.kind LIKE 'action_run.%' AND t.body ->> 'trigger' = 'cron'
            AND k.org_id = t.org_id AND k.install_id = t.install_id AND k.name = t.body ->> 'action'
        LEFT JOIN LATERAL (
            SELECT x.actor, x.rule FROM decisions x
            WHERE x.org_id = t.org_id AND x.change_id = t.body ->> 'change_id' AND t.kind IN ('change.approved', 'change.denied', 'change.no_change')
            ORDER BY x.created_at DESC, x.id DESC LIMIT 1) d ON true
    ), stored AS (
        INSERT INTO events (org_id, seq, id, at, kind, customer_id, app_id, install_id, body)
        SELECT e.org_id, e.seq, e.id, e.at, e.kind, e.customer_id, e.app_id, e.install_id, e.body FROM readable e
    ), kept AS (
        INSERT INTO timeline (org_id, seq, at, kind, app_id, install_id, body)
        SELECT e.org_id, e.seq, e.at, e.kind, e.app_id, e.install_id, e.body FROM readable e
        WHERE berth.in_timeline(e.kind, e.body) AND NOT e.scheduled_check
    )
    INSERT INTO event_heads AS h (org_id, seq)
    SELECT t.org_id, max(t.seq) FROM numbered t GROUP BY t.org_id
    ON CONFLICT (org_id) DO UPDATE SET seq = excluded.seq
    RETURNING h.org_id, h.seq;
END $$;

-- As in 00375; besides, it says who, and what became of the toggles that differ.
CREATE OR REPLACE FUNCTION berth.install_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
DECLARE
    changed text[] := '{}';
    toggled jsonb;
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM berth.emit(NEW.org_id, 'install.created', NULL, NEW.id, jsonb_build_object('stack', NEW.stack_kind, 'actor', NEW.created_by));
        RETURN NULL;
    END IF;
    IF NEW.forgotten_at IS NOT NULL AND OLD.forgotten_at IS NULL THEN
        PERFORM berth.emit(NEW.org_id, 'install.forgotten', NULL, NEW.id, '{}');
    ELSIF NEW.state <> OLD.state AND NEW.state <> 'new' THEN
        PERFORM berth.emit(NEW.org_id, 'install.' || NEW.state, NULL, NEW.id, jsonb_build_object('from', OLD.state));
    END IF;
    IF NEW.name <> OLD.name THEN changed := changed || 'name'::text; END IF;
    IF NEW.approval_option <> OLD.approval_option THEN changed := changed || 'approval_option'::text; END IF;
    IF NEW.approval_hours <> OLD.approval_hours THEN changed := changed || 'approval_hours'::text; END IF;
    IF NEW.labels <> OLD.labels THEN changed := changed || 'labels'::text; END IF;
    IF NEW.toggles <> OLD.toggles THEN
        changed := changed || 'component_toggles'::text;
        SELECT jsonb_object_agg(k, coalesce(NEW.toggles ->> k, 'default')) INTO toggled
        FROM (SELECT jsonb_object_keys(NEW.toggles) UNION SELECT jsonb_object_keys(OLD.toggles)) AS keys (k)
        WHERE NEW.toggles -> k IS DISTINCT FROM OLD.toggles -> k;
    END IF;
    IF changed <> '{}' THEN
        PERFORM berth.emit(NEW.org_id, 'install.updated', NULL, NEW.id, jsonb_build_object(
            'changed', changed, 'toggles', toggled, 'actor', nullif(current_setting('berth.actor', true), '')));
    END IF;
    RETURN NULL;
END $$;

-- As in 00280; besides, it names sensitive inputs too, and components whose
-- overrides differ.
CREATE OR REPLACE FUNCTION berth.inputs_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
DECLARE
    before     jsonb;
    overridden jsonb;
BEGIN
    SELECT i.values, i.overrides INTO before, overridden FROM install_inputs i
    WHERE i.org_id = NEW.org_id AND i.install_id = NEW.install_id AND i.version = NEW.version - 1;
    PERFORM berth.emit(NEW.org_id, 'inputs.changed', NULL, NEW.install_id, jsonb_build_object(
        'version', NEW.version, 'actor', NEW.created_by, 'changed', coalesce(to_jsonb(NEW.changed), (
            SELECT jsonb_agg(k ORDER BY k) FROM (SELECT jsonb_object_keys(NEW.values) UNION SELECT jsonb_object_keys(coalesce(before, '{}'))) AS keys (k)
            WHERE NEW.values -> k IS DISTINCT FROM before -> k), '[]'),
        'overrides', (
            SELECT jsonb_agg(k ORDER BY k) FROM (SELECT jsonb_object_keys(NEW.overrides) UNION SELECT jsonb_object_keys(coalesce(overridden, '{}'))) AS keys (k)
            WHERE NEW.overrides -> k IS DISTINCT FROM overridden -> k)));
    RETURN NULL;
END $$;
-- +goose StatementEnd
