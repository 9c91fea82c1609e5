-- Alerts and incidents: what is wrong with installs, told to people once.
--
-- ctl-api alone writes them: each look at an install compares what is wrong now with the
-- alerts that are not closed. A row is one episode: it closes when all has been well for
-- long enough, and what happens after that is another row.

-- +goose Up

-- The same cause in several installs of an org. It is closed when no alert of its cause is
-- open any more. ctl-api writes it, under a lock of the cause.
CREATE TABLE incidents (
    id             text PRIMARY KEY,
    org_id         text NOT NULL REFERENCES orgs,
    kind           text NOT NULL,
    cause          text NOT NULL CHECK (length(cause) BETWEEN 1 AND 1000),
    about          text NOT NULL CHECK (length(about) <= 500),
    release_id     text,
    runner_version text,
    installs       int NOT NULL CHECK (installs >= 1),
    opened_at      timestamptz NOT NULL DEFAULT now(),
    closed_at      timestamptz,
    UNIQUE (org_id, id)
);
CREATE UNIQUE INDEX incidents_open ON incidents (org_id, cause) WHERE closed_at IS NULL;
CREATE INDEX incidents_list ON incidents (org_id, id DESC);

-- One episode of something that is wrong with an install. held: nobody is told, for the
-- reason hold, until hold_until. open: people are told at tell_at, alone or, once, as an
-- incident. The row goes when the trouble ends before anybody was told. good_since is since when all has been well
-- again; look_at is when it has to be looked at next, if nothing happens before.
CREATE TABLE alerts (
    id              text PRIMARY KEY,
    org_id          text NOT NULL REFERENCES orgs,
    install_id      text NOT NULL,
    kind            text NOT NULL CHECK (kind IN ('unhealthy', 'runner_silent', 'waiting_too_long', 'workflow_failed', 'expiring', 'chain_unreported',
                                                  'drift')),
    subject         text NOT NULL CHECK (length(subject) <= 500),
    state           text NOT NULL CHECK (state IN ('held', 'open', 'closed')),
    text            text NOT NULL CHECK (length(text) <= 1000),
    since           timestamptz NOT NULL,
    cause           text NOT NULL DEFAULT '' CHECK (length(cause) <= 1000),
    release_id      text,
    runner_version  text,
    hold            text CHECK (hold IN ('too_early', 'muted', 'planned_work')),
    hold_until      timestamptz,
    opened_at       timestamptz,
    tell_at         timestamptz,
    told_at         timestamptz,
    good_since      timestamptz,
    relapses        int NOT NULL DEFAULT 0,
    look_at         timestamptz,
    acknowledged_at timestamptz,
    acknowledged_by text,
    note            text,
    incident_id     text,
    closed_at       timestamptz,
    closed_because  text CHECK (closed_because IN ('recovered', 'gone')),
    created_at      timestamptz NOT NULL DEFAULT now(),
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id),
    FOREIGN KEY (org_id, incident_id) REFERENCES incidents (org_id, id),
    CONSTRAINT alerts_hold CHECK (state <> 'held' OR (hold IS NOT NULL AND hold_until IS NOT NULL AND look_at IS NOT NULL AND opened_at IS NULL)),
    CONSTRAINT alerts_opened CHECK (state = 'held' OR (hold IS NULL AND hold_until IS NULL AND opened_at IS NOT NULL AND tell_at IS NOT NULL)),
    CONSTRAINT alerts_look CHECK (state <> 'open' OR look_at IS NOT NULL OR (told_at IS NOT NULL AND good_since IS NULL)),
    CONSTRAINT alerts_told CHECK (state <> 'closed' OR told_at IS NOT NULL),
    CONSTRAINT alerts_closed CHECK ((state = 'closed') = (closed_at IS NOT NULL) AND (closed_at IS NULL) = (closed_because IS NULL) AND (state <> 'closed' OR look_at IS NULL)),
    CONSTRAINT alerts_acknowledged CHECK (num_nonnulls(acknowledged_at, acknowledged_by, note) IN (0, 3))
);
-- Never two of the same at a time, however many replicas look.
CREATE UNIQUE INDEX alerts_one ON alerts (org_id, install_id, kind, subject) WHERE state <> 'closed';
CREATE INDEX alerts_list ON alerts (org_id, id DESC);
CREATE INDEX alerts_of_install ON alerts (org_id, install_id, id DESC);
CREATE INDEX alerts_of_cause ON alerts (org_id, cause) WHERE state = 'open' AND cause <> '';
CREATE INDEX alerts_of_incident ON alerts (org_id, incident_id) WHERE incident_id IS NOT NULL;
CREATE INDEX alerts_due ON alerts (look_at) WHERE look_at IS NOT NULL;
CREATE INDEX alerts_closed_at ON alerts (closed_at) WHERE closed_at IS NOT NULL;

-- Nobody is told of what a mute covers, until it ends: all of an install, a kind, a kind in
-- an install, or one subject of those.
CREATE TABLE alert_mutes (
    id         text PRIMARY KEY,
    org_id     text NOT NULL REFERENCES orgs,
    install_id text,
    kind       text,
    subject    text,
    reason     text NOT NULL CHECK (length(reason) BETWEEN 1 AND 500),
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    until      timestamptz NOT NULL,
    removed_at timestamptz,
    removed_by text,
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id),
    CONSTRAINT alert_mutes_what CHECK (num_nonnulls(install_id, kind) > 0 AND (subject IS NULL OR num_nonnulls(install_id, kind) = 2)),
    CONSTRAINT alert_mutes_until CHECK (until > created_at AND until <= created_at + interval '31 days'),
    CONSTRAINT alert_mutes_removed CHECK (num_nonnulls(removed_at, removed_by) IN (0, 2))
);
CREATE INDEX alert_mutes_in_force ON alert_mutes (org_id, until) WHERE removed_at IS NULL;

SELECT berth.tenant_table('incidents');
SELECT berth.tenant_table('alerts');
SELECT berth.tenant_table('alert_mutes');
GRANT SELECT, INSERT, UPDATE (closed_at) ON incidents TO berth_ctl;
GRANT SELECT, INSERT, DELETE, UPDATE (state, text, since, cause, release_id, runner_version, hold, hold_until, opened_at, tell_at, told_at, good_since, relapses, look_at,
    acknowledged_at, acknowledged_by, note, incident_id, closed_at, closed_because) ON alerts TO berth_ctl;
GRANT SELECT, INSERT, UPDATE (removed_at, removed_by) ON alert_mutes TO berth_ctl;
-- What people were told stays, until its time is over.
CREATE POLICY drops_untold ON alerts AS RESTRICTIVE FOR DELETE TO berth_ctl USING (told_at IS NULL);
GRANT SELECT, DELETE ON alerts, incidents, alert_mutes TO berth_sys;

-- +goose StatementBegin
CREATE FUNCTION berth.alert_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
DECLARE
    about jsonb := jsonb_build_object('alert_id', NEW.id, 'alert_kind', NEW.kind, 'subject', NEW.subject, 'text', NEW.text, 'since', NEW.since,
        'release_id', NEW.release_id, 'runner_version', NEW.runner_version, 'incident_id', NEW.incident_id);
BEGIN
    IF NEW.incident_id IS NOT NULL AND (TG_OP = 'INSERT' OR OLD.incident_id IS NULL) THEN
        PERFORM berth.emit(NEW.org_id, 'alert.joined', NULL, NEW.install_id, about);
    ELSIF NEW.told_at IS NOT NULL AND (TG_OP = 'INSERT' OR OLD.told_at IS NULL) THEN
        PERFORM berth.emit(NEW.org_id, 'alert.opened', NULL, NEW.install_id, about);
    END IF;
    IF TG_OP = 'INSERT' THEN
        RETURN NULL;
    END IF;
    IF NEW.acknowledged_at IS NOT NULL AND OLD.acknowledged_at IS NULL THEN
        PERFORM berth.emit(NEW.org_id, 'alert.acknowledged', NULL, NEW.install_id, about || jsonb_build_object('actor', NEW.acknowledged_by));
    END IF;
    IF NEW.closed_at IS NOT NULL AND OLD.closed_at IS NULL AND NEW.told_at IS NOT NULL THEN
        PERFORM berth.emit(NEW.org_id, 'alert.closed', NULL, NEW.install_id, about || jsonb_build_object('because', NEW.closed_because));
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION berth.incident_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    PERFORM berth.emit(NEW.org_id, CASE TG_OP WHEN 'INSERT' THEN 'incident.opened' ELSE 'incident.closed' END, NULL, NULL, jsonb_build_object(
        'incident_id', NEW.id, 'alert_kind', NEW.kind, 'subject', NEW.about, 'release_id', NEW.release_id, 'runner_version', NEW.runner_version, 'installs', NEW.installs));
    RETURN NULL;
END $$;

-- note_presence also has ctl-api look at the installs whose runner has come or gone.
CREATE OR REPLACE FUNCTION berth.note_presence(offline_seconds float8) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
DECLARE
    moved record;
    count bigint := 0;
BEGIN
    FOR moved IN
        WITH seen AS (
            SELECT r.org_id, r.id, r.state = 'active' AND coalesce(r.last_seen_at > now() - make_interval(secs => offline_seconds), false) AS online
            FROM runners r
        ), differ AS (
            SELECT r.id, s.online FROM runners r JOIN seen s ON s.org_id = r.org_id AND s.id = r.id
            WHERE r.online IS DISTINCT FROM s.online
            FOR NO KEY UPDATE OF r SKIP LOCKED
        )
        UPDATE runners r SET online = d.online FROM differ d WHERE r.id = d.id AND r.online IS DISTINCT FROM d.online RETURNING r.install_id
    LOOP
        count := count + 1;
        IF moved.install_id IS NOT NULL THEN
            PERFORM berth.wake_install(moved.install_id);
        END IF;
    END LOOP;
    RETURN count;
END $$;

-- alerts_overdue lists installs that should have been looked at so many seconds ago: an alert
-- says so, or a runner has been silent for silent_seconds and no alert speaks of it.
CREATE FUNCTION berth.alerts_overdue(late_seconds float8, silent_seconds float8) RETURNS TABLE (org_id text, id text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = berth, pg_temp AS $$
    SELECT a.org_id, a.install_id FROM alerts a WHERE a.look_at < now() - make_interval(secs => late_seconds)
    UNION
    SELECT r.org_id, r.install_id FROM runners r JOIN installs i ON i.org_id = r.org_id AND i.id = r.install_id
    WHERE r.state = 'active' AND r.last_seen_at < now() - make_interval(secs => silent_seconds + late_seconds)
      AND i.forgotten_at IS NULL AND i.state <> 'deprovisioned' AND i.rehearsal IS NULL
      AND NOT EXISTS (SELECT FROM alerts a WHERE a.org_id = r.org_id AND a.install_id = r.install_id AND a.kind = 'runner_silent' AND a.state <> 'closed')
$$;

-- drop_old_alerts forgets what was closed more than so many days ago; it answers how many alerts.
CREATE FUNCTION berth.drop_old_alerts(keep_days int) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
DECLARE
    dropped bigint;
BEGIN
    IF keep_days < 30 THEN
        RAISE EXCEPTION 'keep_days must be at least 30';
    END IF;
    DELETE FROM alerts WHERE closed_at < now() - make_interval(days => keep_days);
    GET DIAGNOSTICS dropped = ROW_COUNT;
    DELETE FROM incidents i WHERE i.closed_at < now() - make_interval(days => keep_days)
        AND NOT EXISTS (SELECT FROM alerts a WHERE a.org_id = i.org_id AND a.incident_id = i.id);
    DELETE FROM alert_mutes WHERE until < now() - make_interval(days => keep_days);
    RETURN dropped;
END $$;

-- alert_counts counts open alerts of all orgs by kind, for metrics.
CREATE FUNCTION berth.alert_counts() RETURNS TABLE (kind text, value float8)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = berth, pg_temp AS $$
    SELECT k.kind, count(a.id)
    FROM unnest('{unhealthy,runner_silent,waiting_too_long,workflow_failed,expiring,chain_unreported,drift}'::text[]) k(kind)
    LEFT JOIN alerts a ON a.kind = k.kind AND a.state = 'open'
    GROUP BY k.kind
$$;
-- +goose StatementEnd
SELECT berth.system_function(fn::regprocedure, VARIADIC '{}'::name[]) FROM unnest(ARRAY['berth.alert_happened()', 'berth.incident_happened()']) AS fn;
SELECT berth.system_function(fn::regprocedure, 'berth_ctl') FROM unnest(ARRAY[
    'berth.note_presence(float8)', 'berth.alerts_overdue(float8, float8)', 'berth.drop_old_alerts(int)', 'berth.alert_counts()']) AS fn;

CREATE TRIGGER happened_new AFTER INSERT ON alerts
    FOR EACH ROW WHEN (NEW.told_at IS NOT NULL OR NEW.incident_id IS NOT NULL) EXECUTE FUNCTION berth.alert_happened();
CREATE TRIGGER happened AFTER UPDATE OF told_at, incident_id, acknowledged_at, closed_at ON alerts
    FOR EACH ROW EXECUTE FUNCTION berth.alert_happened();
CREATE TRIGGER happened_new AFTER INSERT ON incidents FOR EACH ROW EXECUTE FUNCTION berth.incident_happened();
CREATE TRIGGER happened AFTER UPDATE OF closed_at ON incidents
    FOR EACH ROW WHEN (OLD.closed_at IS NULL AND NEW.closed_at IS NOT NULL) EXECUTE FUNCTION berth.incident_happened();
