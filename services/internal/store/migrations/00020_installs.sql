-- Installs and what they consist of.

-- +goose Up

CREATE TABLE installs (
    id              text PRIMARY KEY,
    org_id          text NOT NULL REFERENCES orgs,
    customer_id     text NOT NULL,
    app_id          text NOT NULL,
    name            text NOT NULL,
    stack_kind      text NOT NULL CHECK (stack_kind IN ('local', 'kubernetes', 'aws', 'gcp', 'azure')),
    approval_option text NOT NULL DEFAULT 'prompt' CHECK (approval_option IN ('prompt', 'approve_all')),
    labels          jsonb NOT NULL DEFAULT '{}',
    toggles         jsonb NOT NULL DEFAULT '{}',
    state           text NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'provisioning', 'live', 'deprovisioning', 'deprovisioned', 'forgotten')),
    release_id      text,
    inputs_version  int NOT NULL DEFAULT 0,
    state_version   int NOT NULL DEFAULT 0,
    created_by      text NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    forgotten_at    timestamptz,
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, customer_id) REFERENCES customers (org_id, id),
    FOREIGN KEY (org_id, app_id) REFERENCES apps (org_id, id),
    FOREIGN KEY (org_id, release_id) REFERENCES releases (org_id, id)
);
CREATE UNIQUE INDEX installs_name ON installs (org_id, name) WHERE forgotten_at IS NULL;

ALTER TABLE grants ADD FOREIGN KEY (org_id, app_id) REFERENCES apps (org_id, id);
ALTER TABLE grants ADD FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id);
ALTER TABLE keys ADD FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id);

-- Each change of inputs is a new version. sealed is the JSON object of the
-- sensitive ones, sealed to the org's key at rest.
CREATE TABLE install_inputs (
    org_id     text NOT NULL REFERENCES orgs,
    install_id text NOT NULL,
    version    int NOT NULL,
    values     jsonb NOT NULL DEFAULT '{}',
    sealed     bytea,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, install_id, version),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id)
);

-- The stack, the sandbox and each component of an install. fence counts the
-- exclusive grants to change it; locked_by is the change that holds the present
-- one. A sandbox lock excludes the components of its install and each
-- component lock excludes the sandbox: taken with the install row locked.
CREATE TABLE resources (
    id                   text PRIMARY KEY,
    org_id               text NOT NULL REFERENCES orgs,
    install_id           text NOT NULL,
    kind                 text NOT NULL CHECK (kind IN ('stack', 'sandbox', 'component')),
    component_id         text,
    name                 text NOT NULL,
    type                 text NOT NULL DEFAULT '',
    state                text NOT NULL DEFAULT 'absent' CHECK (state IN ('absent', 'live', 'changing', 'failed', 'unknown', 'orphaned')),
    fence                bigint NOT NULL DEFAULT 0,
    locked_by            text,
    locked_at            timestamptz,
    live_release_id      text,
    live_revision_id     text,
    live_artifact_digest text,
    live_inputs_version  int,
    live_effect_digest   text,
    live_change_id       text,
    outputs              jsonb NOT NULL DEFAULT '{}',
    health               text NOT NULL DEFAULT 'unknown' CHECK (health IN ('unknown', 'healthy', 'unhealthy')),
    health_since         timestamptz,
    drift                text NOT NULL DEFAULT 'unknown' CHECK (drift IN ('unknown', 'none', 'drifted')),
    version              bigint NOT NULL DEFAULT 0,
    updated_at           timestamptz NOT NULL DEFAULT now(),
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id),
    FOREIGN KEY (org_id, component_id) REFERENCES components (org_id, id),
    FOREIGN KEY (org_id, live_release_id) REFERENCES releases (org_id, id),
    CONSTRAINT resources_lock CHECK ((locked_by IS NULL) = (locked_at IS NULL))
);
CREATE UNIQUE INDEX resources_name ON resources (org_id, install_id, kind, name);

-- How a runner gets in. The phone-home secret is used once; only its hash is kept.
CREATE TABLE stack_versions (
    id                     text PRIMARY KEY,
    org_id                 text NOT NULL REFERENCES orgs,
    install_id             text NOT NULL,
    version                int NOT NULL,
    kind                   text NOT NULL,
    body                   jsonb NOT NULL DEFAULT '{}',
    state                  text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'active', 'expired', 'outdated')),
    phone_home_hash        bytea NOT NULL,
    phone_home_body_digest text,
    outputs                jsonb NOT NULL DEFAULT '{}',
    created_at             timestamptz NOT NULL DEFAULT now(),
    expires_at             timestamptz NOT NULL,
    phoned_home_at         timestamptz,
    UNIQUE (org_id, id),
    UNIQUE (org_id, install_id, version),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id)
);
CREATE UNIQUE INDEX stack_versions_secret ON stack_versions (phone_home_hash);

-- The tree that templates read, one append-only version per change of it.
-- Sensitive leaves are sealed to the install's key.
CREATE TABLE state_versions (
    org_id     text NOT NULL REFERENCES orgs,
    install_id text NOT NULL,
    version        int NOT NULL,
    tree           jsonb NOT NULL,
    inputs_version int NOT NULL,
    release_id     text,
    cause          text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, install_id, version),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id)
);

-- A check is an action whose outcomes are judged, or the probe of a component
-- (name component/…). It goes when that is gone. recent holds the last
-- outcomes, newest first, that health.Evaluate looked at.
CREATE TABLE checks (
    org_id     text NOT NULL REFERENCES orgs,
    install_id text NOT NULL,
    name       text NOT NULL,
    verdict    text NOT NULL DEFAULT 'unknown' CHECK (verdict IN ('unknown', 'healthy', 'unhealthy')),
    since      timestamptz NOT NULL DEFAULT now(),
    recent     jsonb NOT NULL DEFAULT '[]',
    silent_at  timestamptz,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, install_id, name),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id)
);

SELECT berth.tenant_table('installs');
SELECT berth.tenant_table('install_inputs');
SELECT berth.tenant_table('resources');
SELECT berth.tenant_table('stack_versions');
SELECT berth.tenant_table('state_versions');
SELECT berth.tenant_table('checks');

GRANT SELECT, INSERT, UPDATE ON installs, resources, stack_versions, checks TO berth_ctl;
GRANT DELETE ON checks TO berth_ctl;
GRANT SELECT, INSERT ON install_inputs, state_versions TO berth_ctl;
GRANT SELECT ON installs, resources, stack_versions, state_versions TO berth_runner;
GRANT UPDATE (state, phone_home_body_digest, outputs, phoned_home_at) ON stack_versions TO berth_runner;
GRANT SELECT ON installs TO berth_builder, berth_log;
GRANT SELECT ON installs, resources, stack_versions, checks TO berth_sys;
