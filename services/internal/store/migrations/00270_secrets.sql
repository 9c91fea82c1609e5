-- +goose Up

-- What is known of the secrets that a customer keeps: names, versions, digests, never
-- values. ctl-api writes what releases say of a secret (declared to description), each time
-- that a workflow begins; runner-api writes what the install's runner has (version to
-- set_at). digest is salted, and the salt stays with the customer: it tells two values
-- apart and nothing else. A secret that no release declares any more keeps its row for as
-- long as the runner has it.
CREATE TABLE install_secrets (
    org_id      text NOT NULL REFERENCES orgs,
    install_id  text NOT NULL,
    name        text NOT NULL CHECK (length(name) BETWEEN 1 AND 128),
    declared    boolean NOT NULL DEFAULT false,
    needed      boolean NOT NULL DEFAULT false,
    made        boolean NOT NULL DEFAULT false,
    description text NOT NULL DEFAULT '',
    version     int NOT NULL DEFAULT 0 CHECK (version >= 0),
    present     boolean NOT NULL DEFAULT false,
    digest      text NOT NULL DEFAULT '',
    set_by      text NOT NULL DEFAULT '',
    set_at      timestamptz,
    PRIMARY KEY (org_id, install_id, name),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id),
    CONSTRAINT install_secrets_present CHECK (NOT present OR (version > 0 AND digest <> '' AND set_at IS NOT NULL))
);
SELECT berth.tenant_table('install_secrets');

GRANT SELECT, INSERT (org_id, install_id, name, declared, needed, made, description), UPDATE (declared, needed, made, description) ON install_secrets TO berth_ctl;
GRANT SELECT (org_id, install_id, name, version, present, digest, set_by, set_at), INSERT (org_id, install_id, name, version, present, digest, set_by, set_at),
      UPDATE (version, present, digest, set_by, set_at) ON install_secrets TO berth_runner;
