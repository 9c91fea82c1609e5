-- One stream of events per org, numbered without gaps.
--
-- Triggers write what happened into event_outbox, as part of the transaction in
-- which it happens, without a number: handing out numbers there would make all
-- transactions of an org queue for one row. The sequencer of ctl-api
-- (berth.number_events) moves committed rows from the outbox into events and
-- numbers them then.
--
-- Nothing is lost to transactions that commit late. What has no number yet is a
-- row in the outbox, not "everything above the last id", so a row that becomes
-- visible later, with a lower id, is simply numbered later. What was committed
-- before something else began has the lower number: its id is lower, and whoever
-- sees the later row sees the earlier one too.
--
-- A body holds ids, names, states and counts. It holds no output of a tool, no
-- error text and no value of an input: it leaves the control plane by webhooks.

-- +goose Up

-- One row for each thing that happened and has no number yet. Triggers write it,
-- the sequencer takes it away; a row stays for milliseconds.
CREATE TABLE event_outbox (
    n          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    org_id     text NOT NULL,
    id         text NOT NULL DEFAULT 'evt_' || replace(gen_random_uuid()::text, '-', ''),
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    kind       text NOT NULL,
    app_id     text,
    install_id text,
    body       jsonb NOT NULL
);

-- How far the numbering of an org has come. Only the sequencer writes it.
CREATE TABLE event_heads (
    org_id text PRIMARY KEY REFERENCES orgs,
    seq    bigint NOT NULL CHECK (seq >= 1)
);

-- The stream. Partitions of a day (UTC) by the time of the numbering; retention
-- drops partitions. customer_id and app_id are those of the install, when it has
-- one: rights are limited to them.
CREATE TABLE events (
    org_id      text NOT NULL,
    seq         bigint NOT NULL CHECK (seq >= 1),
    id          text NOT NULL,
    at          timestamptz NOT NULL,
    kind        text NOT NULL,
    customer_id text,
    app_id      text,
    install_id  text,
    body        jsonb NOT NULL,
    numbered_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, seq, numbered_at)
) PARTITION BY RANGE (numbered_at);
CREATE INDEX events_of_install ON events (org_id, install_id, seq);

SELECT berth.tenant_table('event_outbox');
SELECT berth.tenant_table('event_heads');
SELECT berth.tenant_table('events');
GRANT SELECT, INSERT, DELETE ON event_outbox TO berth_sys;
GRANT SELECT, INSERT, UPDATE ON event_heads TO berth_sys;
GRANT SELECT, INSERT ON events TO berth_sys;
GRANT SELECT ON event_heads, events TO berth_ctl;
GRANT SELECT (org_id, id, change_id, actor, rule, created_at) ON decisions TO berth_sys;
GRANT SELECT (org_id, id, name) ON components TO berth_sys;
GRANT SELECT (org_id, install_id, version, values) ON install_inputs TO berth_sys;

-- emit writes one event. The notice tells the program behind the connection,
-- without another round trip, that there is something to number after the commit
-- (package store); it is no NOTIFY, which would make commits queue.
-- +goose StatementBegin
CREATE FUNCTION berth.emit(org text, kind text, app text, install text, body jsonb) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    INSERT INTO event_outbox (org_id, kind, app_id, install_id, body) VALUES (org, kind, app, install, jsonb_strip_nulls(body));
    RAISE NOTICE 'event' USING ERRCODE = 'BE001';
END $$;
-- +goose StatementEnd

-- What each table tells. Every function runs after the row was written.
-- +goose StatementBegin
CREATE FUNCTION berth.workflow_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    PERFORM berth.emit(NEW.org_id, 'workflow.' || NEW.state, NULL, NEW.install_id, jsonb_build_object(
        'workflow_id', NEW.id, 'number', NEW.number, 'workflow_kind', NEW.kind, 'release_id', NEW.release_id, 'inputs_version', NEW.inputs_version,
        'plan_only', NEW.plan_only, 'actor', NEW.created_by, 'wait_reason', CASE WHEN NEW.state = 'waiting' THEN NEW.wait_reason END));
    RETURN NULL;
END $$;

CREATE FUNCTION berth.step_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    PERFORM berth.emit(NEW.org_id, 'step.' || NEW.state, NULL, NEW.install_id, jsonb_build_object(
        'workflow_id', NEW.workflow_id, 'step_id', NEW.id, 'step', NEW.name, 'step_kind', NEW.kind, 'resource_id', NEW.resource_id,
        'action', NEW.action, 'attempt', NEW.attempt, 'wait_reason', CASE WHEN NEW.state = 'waiting' THEN NEW.wait_reason END));
    RETURN NULL;
END $$;

CREATE FUNCTION berth.change_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    PERFORM berth.emit(NEW.org_id, 'change.' || NEW.state, NULL, NEW.install_id, jsonb_build_object(
        'workflow_id', NEW.workflow_id, 'step_id', NEW.step_id, 'change_id', NEW.id, 'change_kind', NEW.kind, 'resource_id', NEW.resource_id,
        'release_id', NEW.release_id, 'effect_digest', NEW.effect_digest, 'replaces', NEW.replaces));
    RETURN NULL;
END $$;

CREATE FUNCTION berth.build_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    PERFORM berth.emit(NEW.org_id, 'build.' || NEW.state, NEW.app_id, NULL, jsonb_build_object(
        'build_id', NEW.id, 'component_id', NEW.component_id, 'reason', NEW.reason, 'actor', NEW.requested_by,
        'source_commit', NEW.source_commit, 'artifact_digest', NEW.artifact_digest));
    RETURN NULL;
END $$;

CREATE FUNCTION berth.config_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    PERFORM berth.emit(NEW.org_id, 'config.created', NEW.app_id, NULL,
        jsonb_build_object('config_id', NEW.id, 'number', NEW.number, 'actor', NEW.created_by));
    RETURN NULL;
END $$;

CREATE FUNCTION berth.release_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    PERFORM berth.emit(NEW.org_id, 'release.created', NEW.app_id, NULL,
        jsonb_build_object('release_id', NEW.id, 'number', NEW.number, 'config_id', NEW.config_id, 'made_by', NEW.made_by));
    RETURN NULL;
END $$;

CREATE FUNCTION berth.variables_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    PERFORM berth.emit(NEW.org_id, 'variables.changed', NEW.id, NULL, jsonb_build_object('version', NEW.variables_version));
    RETURN NULL;
END $$;

-- An install is made; its state moves; or somebody changes what it is set to.
CREATE FUNCTION berth.install_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
DECLARE
    changed text[] := '{}';
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
    IF NEW.labels <> OLD.labels THEN changed := changed || 'labels'::text; END IF;
    IF NEW.toggles <> OLD.toggles THEN changed := changed || 'component_toggles'::text; END IF;
    IF changed <> '{}' THEN
        PERFORM berth.emit(NEW.org_id, 'install.updated', NULL, NEW.id, jsonb_build_object('changed', changed));
    END IF;
    RETURN NULL;
END $$;

-- The names of plain inputs that differ; sensitive ones are sealed, also from this.
CREATE FUNCTION berth.inputs_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
DECLARE
    before jsonb;
BEGIN
    SELECT i.values INTO before FROM install_inputs i
    WHERE i.org_id = NEW.org_id AND i.install_id = NEW.install_id AND i.version = NEW.version - 1;
    PERFORM berth.emit(NEW.org_id, 'inputs.changed', NULL, NEW.install_id, jsonb_build_object(
        'version', NEW.version, 'actor', NEW.created_by, 'changed', coalesce((
            SELECT jsonb_agg(k ORDER BY k) FROM (SELECT jsonb_object_keys(NEW.values) UNION SELECT jsonb_object_keys(coalesce(before, '{}'))) AS keys (k)
            WHERE NEW.values -> k IS DISTINCT FROM before -> k), '[]')));
    RETURN NULL;
END $$;

CREATE FUNCTION berth.runner_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
DECLARE
    about jsonb := jsonb_build_object('runner_id', NEW.id, 'runner_kind', NEW.kind, 'version', NEW.version);
BEGIN
    IF NEW.state <> OLD.state AND NEW.state <> 'pending' THEN
        PERFORM berth.emit(NEW.org_id, CASE NEW.state WHEN 'active' THEN 'runner.enrolled' ELSE 'runner.revoked' END, NULL, NEW.install_id, about);
    END IF;
    IF NEW.online <> OLD.online THEN
        PERFORM berth.emit(NEW.org_id, CASE WHEN NEW.online THEN 'runner.online' ELSE 'runner.offline' END, NULL, NEW.install_id,
            about || jsonb_build_object('last_seen_at', NEW.last_seen_at));
    END IF;
    IF NEW.switch <> OLD.switch THEN
        PERFORM berth.emit(NEW.org_id, 'runner.switched', NULL, NEW.install_id, about || jsonb_build_object('from', OLD.switch, 'to', NEW.switch));
    END IF;
    RETURN NULL;
END $$;

-- Probes of components run each minute; what they find is health.changed.
CREATE FUNCTION berth.run_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    PERFORM berth.emit(NEW.org_id, 'action_run.' || NEW.state, NULL, NEW.install_id, jsonb_build_object(
        'run_id', NEW.id, 'action', NEW.action, 'trigger', NEW.trigger, 'actor', NEW.created_by, 'workflow_id', NEW.workflow_id,
        'change_id', NEW.change_id, 'scheduled_at', NEW.scheduled_at, 'exit_code', NEW.exit_code));
    RETURN NULL;
END $$;

CREATE FUNCTION berth.resource_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
DECLARE
    about jsonb := jsonb_build_object('resource_id', NEW.id);
BEGIN
    IF NEW.state <> OLD.state THEN
        PERFORM berth.emit(NEW.org_id, 'resource.' || NEW.state, NULL, NEW.install_id,
            about || jsonb_build_object('from', OLD.state, 'release_id', NEW.live_release_id, 'change_id', coalesce(NEW.locked_by, NEW.live_change_id)));
    END IF;
    IF NEW.health <> OLD.health THEN
        PERFORM berth.emit(NEW.org_id, 'health.changed', NULL, NEW.install_id, about || jsonb_build_object('from', OLD.health, 'to', NEW.health));
    END IF;
    IF NEW.drift <> OLD.drift THEN
        PERFORM berth.emit(NEW.org_id, 'drift.changed', NULL, NEW.install_id, about || jsonb_build_object('from', OLD.drift, 'to', NEW.drift));
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION berth.check_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    PERFORM berth.emit(NEW.org_id, 'check.changed', NULL, NEW.install_id, jsonb_build_object(
        'check', NEW.name, 'from', CASE TG_OP WHEN 'UPDATE' THEN OLD.verdict ELSE 'unknown' END, 'to', NEW.verdict));
    RETURN NULL;
END $$;

CREATE FUNCTION berth.alarm_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    PERFORM berth.emit(NEW.org_id, CASE TG_OP WHEN 'INSERT' THEN 'alarm.raised' ELSE 'alarm.acknowledged' END, NULL,
        (SELECT r.install_id FROM runners r WHERE r.org_id = NEW.org_id AND r.id = NEW.runner_id), jsonb_build_object(
        'alarm_id', NEW.id, 'alarm_kind', NEW.kind, 'about', NEW.subject, 'runner_id', NEW.runner_id, 'actor', NEW.acknowledged_by));
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- Nobody but these triggers may call them.
SELECT berth.system_function(fn::regprocedure, VARIADIC '{}'::name[]) FROM unnest(ARRAY[
    'berth.emit(text, text, text, text, jsonb)', 'berth.workflow_happened()', 'berth.step_happened()', 'berth.change_happened()',
    'berth.build_happened()', 'berth.config_happened()', 'berth.release_happened()', 'berth.variables_happened()',
    'berth.install_happened()', 'berth.inputs_happened()', 'berth.runner_happened()', 'berth.run_happened()',
    'berth.resource_happened()', 'berth.check_happened()', 'berth.alarm_happened()']) AS fn;

-- Whether the runner is being heard, as it was told last: berth.note_presence.
ALTER TABLE runners ADD COLUMN online boolean NOT NULL DEFAULT false;
UPDATE runners SET online = true WHERE state = 'active' AND last_seen_at > now() - interval '2 minutes';
GRANT UPDATE (online) ON runners TO berth_sys;

CREATE TRIGGER happened_new AFTER INSERT ON workflows FOR EACH ROW EXECUTE FUNCTION berth.workflow_happened();
CREATE TRIGGER happened AFTER UPDATE OF state ON workflows
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION berth.workflow_happened();
CREATE TRIGGER happened AFTER UPDATE OF state ON steps
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION berth.step_happened();
CREATE TRIGGER happened_new AFTER INSERT ON changes FOR EACH ROW EXECUTE FUNCTION berth.change_happened();
CREATE TRIGGER happened AFTER UPDATE OF state ON changes
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION berth.change_happened();
CREATE TRIGGER happened_new AFTER INSERT ON builds FOR EACH ROW EXECUTE FUNCTION berth.build_happened();
CREATE TRIGGER happened AFTER UPDATE OF state ON builds
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION berth.build_happened();
CREATE TRIGGER happened_new AFTER INSERT ON configs FOR EACH ROW EXECUTE FUNCTION berth.config_happened();
CREATE TRIGGER happened_new AFTER INSERT ON releases FOR EACH ROW EXECUTE FUNCTION berth.release_happened();
CREATE TRIGGER happened AFTER UPDATE OF variables_version ON apps
    FOR EACH ROW WHEN (OLD.variables_version IS DISTINCT FROM NEW.variables_version) EXECUTE FUNCTION berth.variables_happened();
CREATE TRIGGER happened_new AFTER INSERT ON installs FOR EACH ROW EXECUTE FUNCTION berth.install_happened();
CREATE TRIGGER happened AFTER UPDATE OF state, name, approval_option, labels, toggles, forgotten_at ON installs
    FOR EACH ROW EXECUTE FUNCTION berth.install_happened();
CREATE TRIGGER happened_new AFTER INSERT ON install_inputs
    FOR EACH ROW WHEN (NEW.version > 1) EXECUTE FUNCTION berth.inputs_happened();
CREATE TRIGGER happened AFTER UPDATE OF state, online, switch ON runners
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state OR OLD.online IS DISTINCT FROM NEW.online OR OLD.switch IS DISTINCT FROM NEW.switch)
    EXECUTE FUNCTION berth.runner_happened();
CREATE TRIGGER happened_new AFTER INSERT ON action_runs
    FOR EACH ROW WHEN (NEW.action NOT LIKE 'component/%') EXECUTE FUNCTION berth.run_happened();
CREATE TRIGGER happened AFTER UPDATE OF state ON action_runs
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state AND NEW.action NOT LIKE 'component/%') EXECUTE FUNCTION berth.run_happened();
CREATE TRIGGER happened AFTER UPDATE OF state, health, drift ON resources
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state OR OLD.health IS DISTINCT FROM NEW.health OR OLD.drift IS DISTINCT FROM NEW.drift)
    EXECUTE FUNCTION berth.resource_happened();
CREATE TRIGGER happened_new AFTER INSERT ON checks
    FOR EACH ROW WHEN (NEW.verdict <> 'unknown' AND NEW.name NOT LIKE 'component/%') EXECUTE FUNCTION berth.check_happened();
CREATE TRIGGER happened AFTER UPDATE OF verdict ON checks
    FOR EACH ROW WHEN (OLD.verdict IS DISTINCT FROM NEW.verdict AND NEW.name NOT LIKE 'component/%') EXECUTE FUNCTION berth.check_happened();
CREATE TRIGGER happened_new AFTER INSERT ON alarms
    FOR EACH ROW WHEN (NEW.kind <> 'recipient_trusted') EXECUTE FUNCTION berth.alarm_happened();
CREATE TRIGGER happened AFTER UPDATE OF acknowledged_at ON alarms
    FOR EACH ROW WHEN (OLD.acknowledged_at IS NULL AND NEW.acknowledged_at IS NOT NULL) EXECUTE FUNCTION berth.alarm_happened();

-- number_events gives the oldest events of the outbox their numbers, at most so
-- many, and answers how far each org has come by that; nothing when there was
-- none. One at a time: who waits for the other looks only after it, because each
-- statement of the function sees what was committed before that statement began.
-- It adds what makes an event readable, which the transactions that wrote it do
-- not pay for: customer, app, names, and who decided.
-- +goose StatementBegin
CREATE FUNCTION berth.number_events(most int) RETURNS TABLE (numbered_org text, head bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp SET lock_timeout = '5s' AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('berth.number_events', 0));
    RETURN QUERY
    WITH taken AS (
        DELETE FROM event_outbox o WHERE o.n IN (SELECT x.n FROM event_outbox x ORDER BY x.n LIMIT most) RETURNING o.*
    ), numbered AS (
        SELECT t.*, coalesce(h.seq, 0) + row_number() OVER (PARTITION BY t.org_id ORDER BY t.n) AS seq
        FROM taken t LEFT JOIN event_heads h ON h.org_id = t.org_id
    ), stored AS (
        INSERT INTO events (org_id, seq, id, at, kind, customer_id, app_id, install_id, body)
        SELECT t.org_id, t.seq, t.id, t.at, t.kind, i.customer_id, coalesce(t.app_id, i.app_id), t.install_id,
               t.body || jsonb_strip_nulls(jsonb_build_object(
                   'install', i.name, 'app', a.name, 'resource', r.name, 'resource_kind', r.kind, 'component', c.name,
                   'actor', coalesce(d.actor, t.body ->> 'actor'), 'rule', d.rule))
        FROM numbered t
        LEFT JOIN installs i ON i.org_id = t.org_id AND i.id = t.install_id
        LEFT JOIN apps a ON a.org_id = t.org_id AND a.id = coalesce(t.app_id, i.app_id)
        LEFT JOIN resources r ON r.org_id = t.org_id AND r.id = t.body ->> 'resource_id'
        LEFT JOIN components c ON c.org_id = t.org_id AND c.id = t.body ->> 'component_id'
        LEFT JOIN LATERAL (
            SELECT x.actor, x.rule FROM decisions x
            WHERE x.org_id = t.org_id AND x.change_id = t.body ->> 'change_id' AND t.kind IN ('change.approved', 'change.denied', 'change.no_change')
            ORDER BY x.created_at DESC, x.id DESC LIMIT 1) d ON true
    )
    INSERT INTO event_heads AS h (org_id, seq)
    SELECT t.org_id, max(t.seq) FROM numbered t GROUP BY t.org_id
    ON CONFLICT (org_id) DO UPDATE SET seq = excluded.seq
    RETURNING h.org_id, h.seq;
END $$;

-- note_presence writes which runners of all orgs have come or gone since it was
-- called last: heard within so many seconds, or not. It answers how many.
CREATE FUNCTION berth.note_presence(offline_seconds float8) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
    WITH seen AS (
        SELECT r.org_id, r.id, r.state = 'active' AND coalesce(r.last_seen_at > now() - make_interval(secs => offline_seconds), false) AS online
        FROM runners r
    ), moved AS (
        SELECT r.id, s.online FROM runners r JOIN seen s ON s.org_id = r.org_id AND s.id = r.id
        WHERE r.online IS DISTINCT FROM s.online
        FOR NO KEY UPDATE OF r SKIP LOCKED
    ), done AS (
        UPDATE runners r SET online = m.online FROM moved m WHERE r.id = m.id AND r.online IS DISTINCT FROM m.online RETURNING 1
    )
    SELECT count(*) FROM done
$$;

-- add_day_partition makes the partition of one day of a table, if it is missing.
-- The table is made first and attached then, which blocks no reader or writer.
CREATE FUNCTION berth.add_day_partition(parent text, day date) RETURNS void
    LANGUAGE plpgsql SET search_path = berth, pg_temp SET timezone = 'UTC' AS $$
DECLARE
    partition text := parent || '_' || to_char(day, 'YYYYMMDD');
BEGIN
    IF to_regclass('berth.' || partition) IS NULL THEN
        EXECUTE format('CREATE TABLE berth.%I (LIKE berth.%I INCLUDING ALL)', partition, parent);
        EXECUTE format('ALTER TABLE berth.%I ATTACH PARTITION berth.%I FOR VALUES FROM (%L) TO (%L)',
                       parent, partition, day::timestamptz, (day + 1)::timestamptz);
    END IF;
END $$;

-- keep_event_partitions makes the partitions of today and of the next ahead_days
-- days, and drops those whose day ended more than keep_days days ago. It returns
-- the names of the dropped ones, or NULL when another replica is at it; it gives
-- up after 3 s, to be called again, rather than hold up everybody.
CREATE FUNCTION berth.keep_event_partitions(keep_days int, ahead_days int) RETURNS text[]
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp SET timezone = 'UTC' SET lock_timeout = '3s' AS $$
DECLARE
    today   date := current_date;
    parent  text;
    old     record;
    dropped text[] := '{}';
BEGIN
    IF keep_days < 7 OR ahead_days < 1 THEN
        RAISE EXCEPTION 'keep_days must be at least 7 and ahead_days at least 1';
    END IF;
    IF NOT pg_try_advisory_xact_lock(hashtextextended('berth.event_partitions', 0)) THEN
        RETURN NULL;
    END IF;
    FOREACH parent IN ARRAY ARRAY['events', 'webhook_deliveries'] LOOP
        FOR i IN 0 .. ahead_days LOOP
            PERFORM berth.add_day_partition(parent, today + i);
        END LOOP;
        FOR old IN
            SELECT c.relname AS name
            FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = ('berth.' || parent)::regclass
            ORDER BY c.relname
        LOOP
            -- Not in the query: it could read the names of other relations first.
            IF to_date(right(old.name, 8), 'YYYYMMDD') < today - keep_days THEN
                EXECUTE format('DROP TABLE berth.%I', old.name);
                dropped := dropped || old.name::text;
            END IF;
        END LOOP;
    END LOOP;
    RETURN dropped;
END $$;
-- +goose StatementEnd
GRANT SELECT (org_id, id, name) ON apps TO berth_sys;
SELECT berth.system_function('berth.number_events(int)', 'berth_ctl');
SELECT berth.system_function('berth.note_presence(float8)', 'berth_ctl');
GRANT EXECUTE ON FUNCTION berth.keep_event_partitions(int, int) TO berth_ctl;
