-- The customer's recovery key, and whom the control plane seals to.

-- +goose Up

-- What a runner says of its customer's recovery key, and what another machine
-- needs to take its place. runner-api writes it; nothing is sealed because of it
-- alone, see install_recipients.
CREATE TABLE install_recovery (
    org_id      text NOT NULL REFERENCES orgs,
    install_id  text NOT NULL,
    -- The public half of the key, and the envelope by which the one before it
    -- signed it; NULL without a key.
    key_id      text,
    signing_key text,
    recipient   text,
    change      jsonb,
    -- The salt of the install, sealed on the customer's side.
    sealed_salt bytea,
    -- The handover.v1 with which the present machine took its place.
    handover    jsonb,
    updated_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, install_id),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id),
    CONSTRAINT install_recovery_key CHECK (num_nonnulls(key_id, signing_key, recipient) IN (0, 3))
);
SELECT berth.tenant_table('install_recovery');
GRANT SELECT, INSERT, UPDATE ON install_recovery TO berth_runner;
GRANT SELECT ON install_recovery TO berth_ctl;

-- Whom ctl-api seals the secrets of an install to: machines that it verified
-- itself, append-only, the newest counts. The first one is trusted as it comes; a
-- later one needs a handover, signed by the recovery key of the one before. Only
-- ctl-api writes here.
CREATE TABLE install_recipients (
    org_id               text NOT NULL REFERENCES orgs,
    install_id           text NOT NULL,
    number               int NOT NULL,
    machine_key          text NOT NULL, -- Ed25519, base64
    seal_recipient       text NOT NULL,
    recovery_key_id      text,
    recovery_signing_key text,
    recovery_recipient   text,
    reason               text NOT NULL CHECK (reason IN ('first', 'recovery_key', 'recovery_change', 'handover', 'consent')),
    evidence             jsonb, -- the envelope that was verified
    created_at           timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, install_id, number),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id),
    CONSTRAINT install_recipients_recovery CHECK (num_nonnulls(recovery_key_id, recovery_signing_key, recovery_recipient) IN (0, 3))
);
SELECT berth.tenant_table('install_recipients');
GRANT SELECT, INSERT ON install_recipients TO berth_ctl;

-- ctl-api raises alarms of its own. Kinds are named in the code.
ALTER TABLE alarms DROP CONSTRAINT alarms_kind_check;
ALTER TABLE alarms ADD CONSTRAINT alarms_kind_check CHECK (kind ~ '^[a-z][a-z_]{0,62}$');
GRANT INSERT ON alarms TO berth_ctl;

-- What a runner seals again: states are its own rows, outputs are ctl-api's.
GRANT SELECT (org_id, id, install_id, kind, name, outputs) ON resources TO berth_runner;
GRANT SELECT, UPDATE (outputs) ON resources TO berth_sys;
-- +goose StatementBegin
-- reseal_outputs puts outputs in the place of those that were read, when nothing
-- but the sealing of sensitive ones differs. It says whether it did.
CREATE FUNCTION berth.reseal_outputs(install text, resource text, before jsonb, after jsonb) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    IF EXISTS (
        SELECT FROM jsonb_each(before) b FULL JOIN jsonb_each(after) a USING (key)
        WHERE a.value IS NULL OR b.value IS NULL
           OR a.value - 'value' IS DISTINCT FROM b.value - 'value'
           OR (a.value IS DISTINCT FROM b.value AND NOT coalesce((a.value->'sensitive')::boolean AND a.value->'value' ? '$sealed' AND b.value->'value' ? '$sealed', false))
    ) THEN
        RETURN false;
    END IF;
    UPDATE resources r SET outputs = after
    WHERE r.org_id = berth.current_org() AND r.install_id = install AND r.id = resource AND r.outputs = before;
    RETURN FOUND;
END $$;
-- +goose StatementEnd
SELECT berth.system_function('berth.reseal_outputs(text, text, jsonb, jsonb)', 'berth_runner');
