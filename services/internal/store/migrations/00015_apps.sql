-- Apps, their configs, builds and releases.

-- +goose Up

CREATE TABLE apps (
    id           text PRIMARY KEY,
    org_id       text NOT NULL REFERENCES orgs,
    name         text NOT NULL,
    display_name text NOT NULL DEFAULT '',
    description  text NOT NULL DEFAULT '',
    labels       jsonb NOT NULL DEFAULT '{}',
    created_at   timestamptz NOT NULL DEFAULT now(),
    deleted_at   timestamptz,
    UNIQUE (org_id, id)
);
CREATE UNIQUE INDEX apps_name ON apps (org_id, name) WHERE deleted_at IS NULL;

-- Uploaded archives by digest: config bundles and local sources. A sync names
-- digests; the CLI uploads only those that are missing here.
CREATE TABLE blobs (
    org_id     text NOT NULL REFERENCES orgs,
    digest     text NOT NULL CHECK (digest ~ '^sha256:[0-9a-f]{64}$'),
    size_bytes bigint NOT NULL,
    body       bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, digest)
);

-- A config is one immutable, numbered version of the app folder. body is the
-- parsed app (appconfig.App as JSON); the folder itself is the blob
-- bundle_digest.
CREATE TABLE configs (
    id            text PRIMARY KEY,
    org_id        text NOT NULL REFERENCES orgs,
    app_id        text NOT NULL,
    number        int NOT NULL,
    digest        text NOT NULL,
    bundle_digest text NOT NULL,
    body          jsonb NOT NULL,
    cli_version   text NOT NULL DEFAULT '',
    created_by    text NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, app_id) REFERENCES apps (org_id, id),
    FOREIGN KEY (org_id, bundle_digest) REFERENCES blobs (org_id, digest)
);
CREATE UNIQUE INDEX configs_number ON configs (org_id, app_id, number);
CREATE UNIQUE INDEX configs_digest ON configs (org_id, app_id, digest);

-- The sandbox is a component of kind sandbox, named "sandbox".
CREATE TABLE components (
    id            text PRIMARY KEY,
    org_id        text NOT NULL REFERENCES orgs,
    app_id        text NOT NULL,
    kind          text NOT NULL CHECK (kind IN ('sandbox', 'component')),
    name          text NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    tombstoned_at timestamptz,
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, app_id) REFERENCES apps (org_id, id)
);
CREATE UNIQUE INDEX components_name ON components (org_id, app_id, kind, name);

-- A revision is what a component is in some configs: what it is built from
-- (build_digest) and what it is deployed with (deploy_digest).
CREATE TABLE component_revisions (
    id            text PRIMARY KEY,
    org_id        text NOT NULL REFERENCES orgs,
    component_id  text NOT NULL,
    type          text NOT NULL,
    build_digest  text NOT NULL,
    deploy_digest text NOT NULL,
    spec          jsonb NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, component_id) REFERENCES components (org_id, id)
);
CREATE UNIQUE INDEX component_revisions_digests ON component_revisions (org_id, component_id, build_digest, deploy_digest);

-- A build makes one artifact. source says where from ({"kind":"local","digest"}
-- or {"kind":"git","repo","ref","directory"}); resolved_digest is over
-- build_digest and the exact content (archive digest or commit), and is what
-- later builds are reused by.
CREATE TABLE builds (
    id                  text PRIMARY KEY,
    org_id              text NOT NULL REFERENCES orgs,
    app_id              text NOT NULL,
    component_id        text NOT NULL,
    revision_id         text NOT NULL,
    build_digest        text NOT NULL,
    source              jsonb NOT NULL,
    source_commit       text,
    resolved_digest     text,
    state               text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
    reason              text NOT NULL DEFAULT '',
    reused_from         text,
    job_id              text,
    artifact_repository text,
    artifact_digest     text,
    artifact_size_bytes bigint,
    provenance          jsonb,
    error               text,
    requested_by        text NOT NULL,
    trace               jsonb NOT NULL DEFAULT '{}',
    created_at          timestamptz NOT NULL DEFAULT now(),
    started_at          timestamptz,
    finished_at         timestamptz,
    cancel_requested_at timestamptz,
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, app_id) REFERENCES apps (org_id, id),
    FOREIGN KEY (org_id, component_id) REFERENCES components (org_id, id),
    FOREIGN KEY (org_id, revision_id) REFERENCES component_revisions (org_id, id),
    CONSTRAINT builds_artifact CHECK (state <> 'succeeded' OR (artifact_digest IS NOT NULL AND artifact_repository IS NOT NULL))
);
CREATE INDEX builds_reuse ON builds (org_id, component_id, build_digest) WHERE state = 'succeeded';
CREATE INDEX builds_resolved ON builds (org_id, resolved_digest) WHERE state = 'succeeded';
CREATE INDEX builds_list ON builds (org_id, created_at DESC, id);

-- Which revision and build stands for each component in a config.
CREATE TABLE config_items (
    org_id       text NOT NULL REFERENCES orgs,
    config_id    text NOT NULL,
    component_id text NOT NULL,
    revision_id  text NOT NULL,
    build_id     text NOT NULL,
    PRIMARY KEY (org_id, config_id, component_id),
    FOREIGN KEY (org_id, config_id) REFERENCES configs (org_id, id),
    FOREIGN KEY (org_id, component_id) REFERENCES components (org_id, id),
    FOREIGN KEY (org_id, revision_id) REFERENCES component_revisions (org_id, id),
    FOREIGN KEY (org_id, build_id) REFERENCES builds (org_id, id)
);
CREATE INDEX config_items_build ON config_items (org_id, build_id);

-- A release is the lockfile: a config and the exact build of each component.
CREATE TABLE releases (
    id         text PRIMARY KEY,
    org_id     text NOT NULL REFERENCES orgs,
    app_id     text NOT NULL,
    number     int NOT NULL,
    config_id  text NOT NULL,
    made_by    text NOT NULL CHECK (made_by IN ('sync', 'rebuild', 'promotion')),
    digest     text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, app_id) REFERENCES apps (org_id, id),
    FOREIGN KEY (org_id, config_id) REFERENCES configs (org_id, id)
);
CREATE UNIQUE INDEX releases_number ON releases (org_id, app_id, number);
CREATE UNIQUE INDEX releases_digest ON releases (org_id, app_id, digest);

CREATE TABLE release_items (
    org_id              text NOT NULL REFERENCES orgs,
    release_id          text NOT NULL,
    component_id        text NOT NULL,
    revision_id         text NOT NULL,
    build_id            text NOT NULL,
    artifact_repository text NOT NULL,
    artifact_digest     text NOT NULL,
    PRIMARY KEY (org_id, release_id, component_id),
    FOREIGN KEY (org_id, release_id) REFERENCES releases (org_id, id),
    FOREIGN KEY (org_id, component_id) REFERENCES components (org_id, id),
    FOREIGN KEY (org_id, revision_id) REFERENCES component_revisions (org_id, id),
    FOREIGN KEY (org_id, build_id) REFERENCES builds (org_id, id)
);

SELECT berth.tenant_table('apps');
SELECT berth.tenant_table('blobs');
SELECT berth.tenant_table('configs');
SELECT berth.tenant_table('components');
SELECT berth.tenant_table('component_revisions');
SELECT berth.tenant_table('builds');
SELECT berth.tenant_table('config_items');
SELECT berth.tenant_table('releases');
SELECT berth.tenant_table('release_items');

GRANT SELECT, INSERT, UPDATE ON apps, configs, components, component_revisions, builds TO berth_ctl;
GRANT SELECT, INSERT ON blobs, config_items, releases, release_items TO berth_ctl;
GRANT SELECT ON apps, blobs, configs, components, component_revisions, config_items TO berth_builder;
-- FOR UPDATE on apps and configs serialises the numbering of releases.
GRANT UPDATE (display_name) ON apps TO berth_builder;
GRANT SELECT, UPDATE ON builds TO berth_builder;
GRANT SELECT, INSERT ON releases, release_items TO berth_builder;
GRANT SELECT, UPDATE (state, started_at) ON builds TO berth_runner;
GRANT SELECT ON apps, builds, configs, releases TO berth_sys;
