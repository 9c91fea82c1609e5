-- How long the changes of an install wait for a decision.

-- +goose Up

-- A proposal of the install that nobody decided on is denied after so many hours.
-- ctl-api writes it; a change takes the number that holds when it is proposed.
ALTER TABLE installs ADD COLUMN approval_hours integer NOT NULL DEFAULT 720 CHECK (approval_hours BETWEEN 1 AND 8760);

-- The event of a changed setting names this one too.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION berth.install_happened() RETURNS trigger
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
    IF NEW.approval_hours <> OLD.approval_hours THEN changed := changed || 'approval_hours'::text; END IF;
    IF NEW.labels <> OLD.labels THEN changed := changed || 'labels'::text; END IF;
    IF NEW.toggles <> OLD.toggles THEN changed := changed || 'component_toggles'::text; END IF;
    IF changed <> '{}' THEN
        PERFORM berth.emit(NEW.org_id, 'install.updated', NULL, NEW.id, jsonb_build_object('changed', changed));
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

DROP TRIGGER happened ON installs;
CREATE TRIGGER happened AFTER UPDATE OF state, name, approval_option, approval_hours, labels, toggles, forgotten_at ON installs
    FOR EACH ROW EXECUTE FUNCTION berth.install_happened();
