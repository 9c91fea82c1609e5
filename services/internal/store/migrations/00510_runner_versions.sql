-- Versions of the runner that an org offers to its installs.

-- +goose Up

-- What was made available of a version for one platform: an artifact of the org's
-- registry with the signed list of the release and the runner's archive. Nobody here
-- believes it: runners verify it with the release key that their customer pinned.
-- ctl-api writes it; list is as it was signed, signed_by the ids that it names.
CREATE TABLE runner_versions (
    org_id     text NOT NULL REFERENCES orgs,
    version    text NOT NULL,
    platform   text NOT NULL,
    repository text NOT NULL,
    digest     text NOT NULL CHECK (digest ~ '^sha256:[0-9a-f]{64}$'),
    size_bytes bigint NOT NULL CHECK (size_bytes > 0),
    list       text NOT NULL,
    signed_by  text[] NOT NULL,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, version, platform)
);
SELECT berth.tenant_table('runner_versions');
GRANT SELECT, INSERT, UPDATE, DELETE ON runner_versions TO berth_ctl;

-- A person's token pulls; one that pushes does so to the versions of the runner alone.
DROP POLICY ctl_tokens_of_people ON registry_tokens;
CREATE POLICY ctl_tokens_of_people ON registry_tokens AS RESTRICTIVE FOR INSERT TO berth_ctl
    WITH CHECK (token_id IS NOT NULL AND runner_id IS NULL AND expires_at <= now() + interval '12 hours'
        AND (actions = ARRAY['pull'] OR actions = ARRAY['pull', 'push'] AND repositories = org_id || '/runner.versions'));
