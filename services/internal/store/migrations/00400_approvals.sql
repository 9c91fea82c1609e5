-- Who has to agree to a change, and when none may be carried out: policies of
-- approval, freeze windows, and the pause that the vendor asks for.

-- +goose Up

-- How many people have to approve a change, in which roles, of an app or of one
-- install; where both say something, the stricter holds. hours is how long a
-- proposal of an app waits, where the install says nothing. about is the id of the
-- app or install. ctl-api writes it.
CREATE TABLE approval_policies (
    about            text NOT NULL,
    org_id           text NOT NULL REFERENCES orgs,
    app_id           text,
    install_id       text,
    approvals        int NOT NULL DEFAULT 1 CHECK (approvals BETWEEN 1 AND 20),
    roles            text[] NOT NULL DEFAULT '{}' CHECK (roles <@ ARRAY['admin', 'operator', 'customer']),
    no_self_approval boolean NOT NULL DEFAULT false,
    hours            int CHECK (hours BETWEEN 1 AND 8760),
    updated_by       text NOT NULL,
    updated_at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, about),
    FOREIGN KEY (org_id, app_id) REFERENCES apps (org_id, id),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id),
    CONSTRAINT approval_policies_about CHECK (num_nonnulls(app_id, install_id) = 1 AND about = coalesce(app_id, install_id)),
    CONSTRAINT approval_policies_hours CHECK (hours IS NULL OR app_id IS NOT NULL)
);

-- Whether approval_hours was said about this install; where it was not, its app's
-- holds.
ALTER TABLE installs ADD COLUMN approval_hours_own boolean NOT NULL DEFAULT false;
UPDATE installs SET approval_hours_own = true WHERE approval_hours <> 720;

-- Who answered, and with which token: the answer counts while both are good. A
-- person counts once for a change and token; rows of before have only the name.
ALTER TABLE decisions ADD COLUMN account_id text, ADD COLUMN token_id text;
CREATE UNIQUE INDEX decisions_one_vote ON decisions (org_id, change_id, account_id, token_id)
    WHERE answer = 'approve' AND rule = 'person' AND account_id IS NOT NULL;
-- Plans that are made again share the votes of their origin.
CREATE INDEX changes_of_origin ON changes (org_id, (coalesce(origin_id, id)));

-- A time in which no change is carried out, of an app or of one install: once, from
-- starts_at to ends_at, or weekly, on days between two times of day in a zone.
-- People remove it; the row stays.
CREATE TABLE freezes (
    id         text PRIMARY KEY,
    org_id     text NOT NULL REFERENCES orgs,
    app_id     text,
    install_id text,
    reason     text NOT NULL CHECK (length(reason) BETWEEN 1 AND 500),
    starts_at  timestamptz,
    ends_at    timestamptz,
    weekly     jsonb,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    removed_by text,
    removed_at timestamptz,
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, app_id) REFERENCES apps (org_id, id),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id),
    CONSTRAINT freezes_about CHECK (num_nonnulls(app_id, install_id) = 1),
    CONSTRAINT freezes_when CHECK (CASE WHEN weekly IS NULL THEN starts_at < ends_at AND starts_at IS NOT NULL AND ends_at IS NOT NULL
                                        ELSE starts_at IS NULL AND ends_at IS NULL END),
    CONSTRAINT freezes_removed CHECK ((removed_by IS NULL) = (removed_at IS NULL))
);
CREATE INDEX freezes_of_app ON freezes (org_id, app_id) WHERE removed_at IS NULL;
CREATE INDEX freezes_of_install ON freezes (org_id, install_id) WHERE removed_at IS NULL;

-- One workflow that is let through a freeze, until the freeze ends for the first
-- time.
CREATE TABLE freeze_overrides (
    org_id      text NOT NULL REFERENCES orgs,
    workflow_id text NOT NULL,
    freeze_id   text NOT NULL,
    install_id  text NOT NULL,
    until       timestamptz NOT NULL,
    reason      text NOT NULL CHECK (length(reason) BETWEEN 1 AND 500),
    actor       text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, workflow_id, freeze_id),
    FOREIGN KEY (org_id, workflow_id) REFERENCES workflows (org_id, id),
    FOREIGN KEY (org_id, freeze_id) REFERENCES freezes (org_id, id),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id)
);

-- The vendor's pause: while it is set, no change of the install is carried out.
ALTER TABLE installs
    ADD COLUMN paused_at timestamptz,
    ADD COLUMN paused_by text,
    ADD COLUMN pause_reason text CHECK (length(pause_reason) BETWEEN 1 AND 500),
    ADD COLUMN resumed_by text,
    ADD CONSTRAINT installs_paused CHECK (num_nonnulls(paused_at, paused_by, pause_reason) IN (0, 3));

ALTER TABLE bulk_operations DROP CONSTRAINT bulk_operations_operation_check;
ALTER TABLE bulk_operations ADD CONSTRAINT bulk_operations_operation_check CHECK (operation IN ('deploy', 'pause', 'resume'));
-- An item that starts no workflow is done at once.
ALTER TABLE bulk_items DROP CONSTRAINT bulk_items_outcome_check;
ALTER TABLE bulk_items ADD CONSTRAINT bulk_items_outcome_check CHECK (outcome IN ('pending', 'started', 'done', 'refused'));

SELECT berth.tenant_table('approval_policies');
SELECT berth.tenant_table('freezes');
SELECT berth.tenant_table('freeze_overrides');
GRANT SELECT, INSERT, UPDATE, DELETE ON approval_policies, freezes, freeze_overrides TO berth_ctl;

-- Events.
-- +goose StatementBegin
CREATE FUNCTION berth.decision_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    PERFORM berth.emit(NEW.org_id, 'decision.made', NULL, c.install_id, jsonb_build_object(
        'workflow_id', c.workflow_id, 'step_id', c.step_id, 'change_id', c.id, 'change_kind', c.kind, 'resource_id', c.resource_id,
        'effect_digest', NEW.effect_digest, 'answer', NEW.answer, 'actor', NEW.actor))
    FROM changes c WHERE c.org_id = NEW.org_id AND c.id = NEW.change_id;
    RETURN NULL;
END $$;

CREATE FUNCTION berth.policy_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    PERFORM berth.emit(NEW.org_id, 'approval_policy.changed', NEW.app_id, NEW.install_id, jsonb_build_object(
        'approvals', NEW.approvals, 'roles', NEW.roles, 'no_self_approval', NEW.no_self_approval, 'hours', NEW.hours, 'actor', NEW.updated_by));
    RETURN NULL;
END $$;

CREATE FUNCTION berth.freeze_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    PERFORM berth.emit(NEW.org_id, CASE TG_OP WHEN 'INSERT' THEN 'freeze.added' ELSE 'freeze.removed' END, NEW.app_id, NEW.install_id, jsonb_build_object(
        'freeze_id', NEW.id, 'starts_at', NEW.starts_at, 'ends_at', NEW.ends_at, 'weekly', NEW.weekly,
        'actor', CASE TG_OP WHEN 'INSERT' THEN NEW.created_by ELSE NEW.removed_by END));
    RETURN NULL;
END $$;

CREATE FUNCTION berth.override_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    PERFORM berth.emit(NEW.org_id, 'freeze.overridden', NULL, NEW.install_id, jsonb_build_object(
        'freeze_id', NEW.freeze_id, 'workflow_id', NEW.workflow_id, 'until', NEW.until, 'actor', NEW.actor));
    RETURN NULL;
END $$;

CREATE FUNCTION berth.pause_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    PERFORM berth.emit(NEW.org_id, CASE WHEN NEW.paused_at IS NULL THEN 'install.resumed' ELSE 'install.paused' END, NULL, NEW.id,
        jsonb_build_object('actor', coalesce(NEW.paused_by, NEW.resumed_by)));
    RETURN NULL;
END $$;
-- +goose StatementEnd

SELECT berth.system_function(fn::regprocedure, VARIADIC '{}'::name[]) FROM unnest(ARRAY[
    'berth.decision_happened()', 'berth.policy_happened()', 'berth.freeze_happened()', 'berth.override_happened()', 'berth.pause_happened()']) AS fn;

CREATE TRIGGER happened_new AFTER INSERT ON decisions FOR EACH ROW WHEN (NEW.rule = 'person') EXECUTE FUNCTION berth.decision_happened();
CREATE TRIGGER happened_new AFTER INSERT ON approval_policies FOR EACH ROW EXECUTE FUNCTION berth.policy_happened();
CREATE TRIGGER happened AFTER UPDATE ON approval_policies
    FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION berth.policy_happened();
CREATE TRIGGER happened_new AFTER INSERT ON freezes FOR EACH ROW EXECUTE FUNCTION berth.freeze_happened();
CREATE TRIGGER happened AFTER UPDATE OF removed_at ON freezes
    FOR EACH ROW WHEN (OLD.removed_at IS NULL AND NEW.removed_at IS NOT NULL) EXECUTE FUNCTION berth.freeze_happened();
CREATE TRIGGER happened_new AFTER INSERT ON freeze_overrides FOR EACH ROW EXECUTE FUNCTION berth.override_happened();
CREATE TRIGGER happened_again AFTER UPDATE ON freeze_overrides FOR EACH ROW EXECUTE FUNCTION berth.override_happened();
CREATE TRIGGER paused AFTER UPDATE OF paused_at ON installs
    FOR EACH ROW WHEN ((OLD.paused_at IS NULL) <> (NEW.paused_at IS NULL)) EXECUTE FUNCTION berth.pause_happened();
