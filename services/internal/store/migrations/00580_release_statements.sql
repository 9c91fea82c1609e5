-- What a vendor signs of its releases. Runners verify it; the control plane has no key to.

-- +goose Up

-- A signed statement about one release (package offer), as it was signed. It is added once
-- and never changed. digest is that of the payload, and key_id the key that signed.
CREATE TABLE release_statements (
    org_id     text NOT NULL REFERENCES orgs,
    release_id text NOT NULL,
    digest     text NOT NULL CHECK (length(digest) <= 100),
    key_id     text NOT NULL CHECK (length(key_id) BETWEEN 1 AND 200),
    envelope   json NOT NULL,
    expires_at timestamptz NOT NULL,
    added_by   text NOT NULL,
    added_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, release_id, digest),
    FOREIGN KEY (org_id, release_id) REFERENCES releases (org_id, id)
);

SELECT berth.tenant_table('release_statements');
GRANT SELECT, INSERT ON release_statements TO berth_ctl;
