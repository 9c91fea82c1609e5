-- Who may see, or has asked for, only some installs gets the events of an incident that
-- reaches one of these.
--
-- Each install that an incident reaches has events of its own, next to those of the org.
-- They have kinds of their own, which a release before this one does not know and sends to
-- no pager; package stream gives them out as incident.opened and incident.closed.

-- +goose Up

-- Events are numbered a little later while it is built.
CREATE INDEX events_of_incident ON events (org_id, (body ->> 'incident_id'), seq) WHERE kind IN ('incident_of_install.opened', 'incident_of_install.closed');

-- +goose StatementBegin
-- As in 00610; besides, the first alert of an install that joins tells the incident there.
CREATE OR REPLACE FUNCTION berth.alert_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
DECLARE
    about jsonb := jsonb_build_object('alert_id', NEW.id, 'alert_kind', NEW.kind, 'subject', NEW.subject, 'text', NEW.text, 'since', NEW.since,
        'release_id', NEW.release_id, 'runner_version', NEW.runner_version, 'incident_id', NEW.incident_id);
BEGIN
    IF NEW.incident_id IS NOT NULL AND (TG_OP = 'INSERT' OR OLD.incident_id IS NULL) THEN
        IF NOT EXISTS (SELECT FROM alerts a WHERE a.org_id = NEW.org_id AND a.incident_id = NEW.incident_id AND a.install_id = NEW.install_id AND a.id <> NEW.id) THEN
            PERFORM berth.emit(n.org_id, 'incident_of_install.opened', NULL, NEW.install_id, jsonb_build_object(
                'incident_id', n.id, 'alert_kind', n.kind, 'subject', n.about, 'release_id', n.release_id, 'runner_version', n.runner_version))
            FROM incidents n WHERE n.org_id = NEW.org_id AND n.id = NEW.incident_id;
        END IF;
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

-- As in 00610; besides, its end is told in each install that it reached.
CREATE OR REPLACE FUNCTION berth.incident_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
DECLARE
    about jsonb := jsonb_build_object(
        'incident_id', NEW.id, 'alert_kind', NEW.kind, 'subject', NEW.about, 'release_id', NEW.release_id, 'runner_version', NEW.runner_version);
BEGIN
    PERFORM berth.emit(NEW.org_id, CASE TG_OP WHEN 'INSERT' THEN 'incident.opened' ELSE 'incident.closed' END, NULL, NULL,
        about || jsonb_build_object('installs', NEW.installs));
    IF TG_OP = 'UPDATE' THEN
        PERFORM berth.emit(NEW.org_id, 'incident_of_install.closed', NULL, a.install_id, about)
        FROM (SELECT DISTINCT x.install_id FROM alerts x WHERE x.org_id = NEW.org_id AND x.incident_id = NEW.id) a;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
SELECT berth.system_function(fn::regprocedure, VARIADIC '{}'::name[]) FROM unnest(ARRAY['berth.alert_happened()', 'berth.incident_happened()']) AS fn;
