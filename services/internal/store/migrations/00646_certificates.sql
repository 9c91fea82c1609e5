-- Certificates for TLS that the looks of an install's runner saw, and when they end.
--
-- ctl-api writes them as it judges what was reported; no key and no certificate is here.

-- +goose Up

CREATE TABLE certificates (
    org_id      text NOT NULL REFERENCES orgs,
    install_id  text NOT NULL,
    check_name  text NOT NULL,
    place       text NOT NULL CHECK (length(place) BETWEEN 1 AND 300),
    subject     text NOT NULL CHECK (length(subject) <= 300),
    fingerprint text NOT NULL CHECK (length(fingerprint) <= 64),
    not_before  timestamptz NOT NULL,
    not_after   timestamptz NOT NULL,
    -- within the hour: a row that says the same is not written each minute
    seen_at     timestamptz NOT NULL,
    PRIMARY KEY (org_id, install_id, check_name, place),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id)
);

SELECT berth.tenant_table('certificates');
GRANT SELECT, INSERT, DELETE, UPDATE (subject, fingerprint, not_before, not_after, seen_at) ON certificates TO berth_ctl;
