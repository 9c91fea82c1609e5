-- inputs.changed is told when other inputs come into force. It was told when a version was
-- stored: a rollback stores one when it is made, and that never comes into force when the
-- rollback is denied, fails or is cancelled.

-- +goose Up
GRANT SELECT (created_by) ON install_inputs TO berth_sys;
DROP TRIGGER happened_new ON install_inputs;

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION berth.inputs_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
DECLARE
    before     jsonb;
    overridden jsonb;
    next       jsonb;
    overrides  jsonb;
    noted      text[];
    who        text;
BEGIN
    SELECT i.values, i.overrides INTO before, overridden FROM install_inputs i
    WHERE i.org_id = NEW.org_id AND i.install_id = NEW.id AND i.version = OLD.inputs_version;
    SELECT i.values, i.overrides, i.changed, i.created_by INTO next, overrides, noted, who FROM install_inputs i
    WHERE i.org_id = NEW.org_id AND i.install_id = NEW.id AND i.version = NEW.inputs_version;
    -- What ctl-api noted of sensitive inputs compares a version with the one before it.
    PERFORM berth.emit(NEW.org_id, 'inputs.changed', NULL, NEW.id, jsonb_build_object(
        'version', NEW.inputs_version, 'actor', who, 'changed', coalesce(
            CASE WHEN NEW.inputs_version = OLD.inputs_version + 1 THEN to_jsonb(noted) END, (
            SELECT jsonb_agg(k ORDER BY k) FROM (
                SELECT jsonb_object_keys(coalesce(next, '{}')) UNION SELECT jsonb_object_keys(coalesce(before, '{}'))) AS keys (k)
            WHERE next -> k IS DISTINCT FROM before -> k), '[]'),
        'overrides', (
            SELECT jsonb_agg(k ORDER BY k) FROM (
                SELECT jsonb_object_keys(coalesce(overrides, '{}')) UNION SELECT jsonb_object_keys(coalesce(overridden, '{}'))) AS keys (k)
            WHERE overrides -> k IS DISTINCT FROM overridden -> k)));
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER inputs_in_force AFTER UPDATE OF inputs_version ON installs
    FOR EACH ROW WHEN (OLD.inputs_version IS DISTINCT FROM NEW.inputs_version AND NEW.inputs_version > 1) EXECUTE FUNCTION berth.inputs_happened();
