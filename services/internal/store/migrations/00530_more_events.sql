-- Events that were missing: what the customer does with secrets, what leaves an app,
-- and what a webhook did not get.

-- +goose Up

-- +goose StatementBegin
-- Names and versions, as install_secrets has them; no digest, which is told apart by
-- its version.
CREATE FUNCTION berth.secret_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    PERFORM berth.emit(NEW.org_id, CASE WHEN NEW.present THEN 'secret.set' ELSE 'secret.removed' END, NULL, NEW.install_id,
        jsonb_build_object('secret', NEW.name, 'version', NEW.version));
    RETURN NULL;
END $$;

-- The component of a resource left the app. People are shown it as orphaned from then
-- on; the state of its row stays, because it is as its last change wanted it.
CREATE FUNCTION berth.component_left() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    PERFORM berth.emit(r.org_id, 'resource.orphaned', NULL, r.install_id, jsonb_build_object(
        'resource_id', r.id, 'from', r.state, 'release_id', r.live_release_id, 'change_id', r.live_change_id))
    FROM resources r WHERE r.org_id = NEW.org_id AND r.component_id = NEW.id AND r.state <> 'absent'
    ORDER BY r.install_id, r.id;
    RETURN NULL;
END $$;

-- The last attempt failed. Not of an event like this one: a webhook that is broken would
-- get one about each of its own, for ever.
CREATE FUNCTION berth.delivery_died() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    PERFORM berth.emit(NEW.org_id, 'webhook_delivery.dead', NULL, NULL, jsonb_build_object(
        'webhook_id', NEW.webhook_id, 'webhook', (SELECT w.name FROM webhooks w WHERE w.org_id = NEW.org_id AND w.id = NEW.webhook_id),
        'delivery_id', NEW.id, 'event_id', NEW.event_id, 'event_kind', NEW.event_kind, 'event_seq', NEW.event_seq,
        'attempts', NEW.attempts, 'status', NEW.status));
    RETURN NULL;
END $$;
-- +goose StatementEnd

SELECT berth.system_function(fn::regprocedure, VARIADIC '{}'::name[])
FROM unnest(ARRAY['berth.secret_happened()', 'berth.component_left()', 'berth.delivery_died()']) AS fn;

CREATE TRIGGER happened_new AFTER INSERT ON install_secrets
    FOR EACH ROW WHEN (NEW.present) EXECUTE FUNCTION berth.secret_happened();
CREATE TRIGGER happened AFTER UPDATE OF version, present ON install_secrets
    FOR EACH ROW WHEN (NEW.present AND (NOT OLD.present OR OLD.version <> NEW.version) OR OLD.present AND NOT NEW.present)
    EXECUTE FUNCTION berth.secret_happened();
CREATE TRIGGER happened AFTER UPDATE OF tombstoned_at ON components
    FOR EACH ROW WHEN (OLD.tombstoned_at IS NULL AND NEW.tombstoned_at IS NOT NULL) EXECUTE FUNCTION berth.component_left();
-- A delivery that is buried with its webhook was not attempted.
CREATE TRIGGER happened AFTER UPDATE OF state ON webhook_deliveries
    FOR EACH ROW WHEN (OLD.state <> 'dead' AND NEW.state = 'dead' AND NEW.attempts > OLD.attempts AND NEW.cause <> 'test'
                       AND NEW.event_kind <> 'webhook_delivery.dead')
    EXECUTE FUNCTION berth.delivery_died();
