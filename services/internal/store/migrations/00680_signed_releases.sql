-- +goose Up
-- What a vendor signs of a release is told, so that nobody has to ask again.
-- +goose StatementBegin
CREATE FUNCTION berth.release_signed() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
DECLARE
    about jsonb;
    app   text;
BEGIN
    SELECT r.app_id, jsonb_build_object('release_id', r.id, 'number', r.number, 'key_id', NEW.key_id, 'actor', NEW.added_by)
    INTO app, about FROM releases r WHERE r.org_id = NEW.org_id AND r.id = NEW.release_id;
    IF TG_TABLE_NAME = 'release_revocations' THEN
        PERFORM berth.emit(NEW.org_id, 'release.revoked', app, NULL, about || jsonb_build_object('reason', to_jsonb(NEW) ->> 'reason'));
    ELSE
        PERFORM berth.emit(NEW.org_id, 'release.signed', app, NULL, about);
    END IF;
    RETURN NULL;
END $$;

-- As in 00620; what is signed of a release is in the timeline too.
CREATE OR REPLACE FUNCTION berth.in_timeline(kind text, body jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE kind
        WHEN 'step.skipped' THEN body ? 'actor'
        WHEN 'change.approved' THEN coalesce(body ->> 'rule', 'person') <> 'read_only'
        WHEN 'drift.changed' THEN body ->> 'from' = 'drifted' OR body ->> 'to' = 'drifted'
        ELSE kind IN (
            'action_run.cancelled', 'action_run.failed', 'action_run.missed', 'action_run.succeeded', 'alert.acknowledged', 'alert.closed', 'alert.joined', 'alert.opened',
            'approval_policy.changed',
            'change.applied', 'change.denied', 'change.failed', 'change.proposed', 'change.refused', 'change.uncertain',
            'check.changed', 'config.created', 'consent.denied', 'consent.given', 'freeze.added', 'freeze.overridden', 'freeze.removed', 'health.changed', 'inputs.changed',
            'install.created', 'install.deprovisioned', 'install.deprovisioning', 'install.forgotten', 'install.live', 'install.paused', 'install.provisioning',
            'install.resumed', 'install.updated',
            'policy.overridden', 'release.created', 'release.revoked', 'release.signed', 'remediation.helped', 'remediation.needs_attention', 'remediation.started', 'resource.orphaned', 'role.disabled', 'role.enabled',
            'runner.enrolled', 'runner.offline', 'runner.online', 'runner.revoked', 'runner.switched',
            'secret.removed', 'secret.set', 'variables.changed', 'workflow.cancelled', 'workflow.failed', 'workflow.queued', 'workflow.succeeded')
    END;
-- +goose StatementEnd
SELECT berth.system_function('berth.release_signed()', VARIADIC '{}'::name[]);
CREATE TRIGGER happened_new AFTER INSERT ON release_statements FOR EACH ROW EXECUTE FUNCTION berth.release_signed();
CREATE TRIGGER happened_new AFTER INSERT ON release_revocations FOR EACH ROW EXECUTE FUNCTION berth.release_signed();
