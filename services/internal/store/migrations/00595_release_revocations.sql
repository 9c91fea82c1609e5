-- What a vendor signs of releases that must not be installed any more. Runners verify it;
-- the control plane has no key to.

-- +goose Up

-- A signed revocation of one release (package offer), as it was signed. It is added once
-- and never changed. digest is that of the payload, and key_id the key that signed.
CREATE TABLE release_revocations (
    org_id     text NOT NULL REFERENCES orgs,
    release_id text NOT NULL,
    digest     text NOT NULL CHECK (length(digest) <= 100),
    key_id     text NOT NULL CHECK (length(key_id) BETWEEN 1 AND 200),
    reason     text NOT NULL CHECK (length(reason) BETWEEN 1 AND 500),
    envelope   json NOT NULL,
    issued_at  timestamptz NOT NULL,
    added_by   text NOT NULL,
    added_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, release_id, digest),
    FOREIGN KEY (org_id, release_id) REFERENCES releases (org_id, id)
);

SELECT berth.tenant_table('release_revocations');
GRANT SELECT, INSERT ON release_revocations TO berth_ctl;
