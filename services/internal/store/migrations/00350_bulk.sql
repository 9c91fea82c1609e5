-- The same workflow in many installs, and what lists across installs read.

-- +goose Up

-- One request for many installs. request is what every workflow is started with;
-- version names it and the installs that were chosen.
CREATE TABLE bulk_operations (
    id          text PRIMARY KEY,
    org_id      text NOT NULL REFERENCES orgs,
    operation   text NOT NULL CHECK (operation IN ('deploy')),
    request     jsonb NOT NULL,
    version     text NOT NULL,
    created_by  text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    UNIQUE (org_id, id)
);
CREATE INDEX bulk_operations_list ON bulk_operations (org_id, id DESC);

-- One install of it: pending until its workflow has started, or was refused with
-- what the problem says.
CREATE TABLE bulk_items (
    org_id      text NOT NULL REFERENCES orgs,
    bulk_id     text NOT NULL,
    install_id  text NOT NULL,
    idx         int NOT NULL,
    outcome     text NOT NULL DEFAULT 'pending' CHECK (outcome IN ('pending', 'started', 'refused')),
    workflow_id text,
    code        text,
    detail      text,
    remedy      text,
    PRIMARY KEY (org_id, bulk_id, install_id),
    FOREIGN KEY (org_id, bulk_id) REFERENCES bulk_operations (org_id, id),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id),
    FOREIGN KEY (org_id, workflow_id) REFERENCES workflows (org_id, id),
    CONSTRAINT bulk_items_started CHECK ((outcome = 'started') = (workflow_id IS NOT NULL)),
    CONSTRAINT bulk_items_refused CHECK ((outcome = 'refused') = (detail IS NOT NULL))
);
CREATE INDEX bulk_items_pending ON bulk_items (org_id, bulk_id, idx) WHERE outcome = 'pending';

SELECT berth.tenant_table('bulk_operations');
SELECT berth.tenant_table('bulk_items');
GRANT SELECT, INSERT, UPDATE ON bulk_operations, bulk_items TO berth_ctl;

-- The changes of a resource and the jobs of a runner, newest first, and the steps
-- that make an install wait.
CREATE INDEX changes_of_resource ON changes (org_id, resource_id, id DESC) WHERE resource_id IS NOT NULL;
CREATE INDEX runner_jobs_list ON runner_jobs (org_id, runner_id, id DESC);
CREATE INDEX steps_waiting ON steps (org_id, install_id) WHERE state = 'waiting';
