-- Workflows, their steps, and the changes that people decide on.
--
-- Whatever waits says for what (wait_reason), on whom (wait_on) and until when
-- (wait_deadline); the checks below hold that.

-- +goose Up

CREATE TABLE workflows (
    id                  text PRIMARY KEY,
    org_id              text NOT NULL REFERENCES orgs,
    install_id          text NOT NULL,
    number              int NOT NULL,
    kind                text NOT NULL,
    state               text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'waiting', 'succeeded', 'failed', 'cancelled')),
    release_id          text,
    inputs_version      int NOT NULL,
    plan_only           boolean NOT NULL DEFAULT false,
    approve_all         boolean NOT NULL DEFAULT false,
    params              jsonb NOT NULL DEFAULT '{}',
    wait_reason         text,
    wait_on             text,
    wait_deadline       timestamptz,
    error               text,
    event_seq           bigint NOT NULL DEFAULT 0,
    trace               jsonb NOT NULL DEFAULT '{}',
    created_by          text NOT NULL,
    created_at          timestamptz NOT NULL DEFAULT now(),
    started_at          timestamptz,
    finished_at         timestamptz,
    cancel_requested_at timestamptz,
    UNIQUE (org_id, id),
    UNIQUE (org_id, install_id, number),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id),
    FOREIGN KEY (org_id, release_id) REFERENCES releases (org_id, id),
    CONSTRAINT workflows_wait CHECK (state <> 'waiting' OR (wait_reason IS NOT NULL AND wait_on IS NOT NULL AND wait_deadline IS NOT NULL))
);
CREATE INDEX workflows_list ON workflows (org_id, created_at DESC, id);
CREATE INDEX workflows_open ON workflows (org_id, install_id) WHERE state IN ('queued', 'running', 'waiting');

-- Steps are the nodes of the workflow's graph; needs names other steps of the
-- same workflow. reason says why the step is part of it.
CREATE TABLE steps (
    id            text PRIMARY KEY,
    org_id        text NOT NULL REFERENCES orgs,
    workflow_id   text NOT NULL,
    install_id    text NOT NULL,
    idx           int NOT NULL,
    name          text NOT NULL,
    kind          text NOT NULL,
    resource_id   text,
    action        text,
    needs         text[] NOT NULL DEFAULT '{}',
    reason        text NOT NULL,
    params        jsonb NOT NULL DEFAULT '{}',
    state         text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'running', 'waiting', 'succeeded', 'skipped', 'failed', 'cancelled')),
    wait_reason   text,
    wait_on       text,
    wait_deadline timestamptz,
    wait_retry_at timestamptz,
    change_id     text,
    attempt       int NOT NULL DEFAULT 0,
    max_retries   int NOT NULL DEFAULT 0,
    error         text,
    remedy        text,
    started_at    timestamptz,
    finished_at   timestamptz,
    retried_at    timestamptz,
    UNIQUE (org_id, id),
    UNIQUE (org_id, workflow_id, name),
    FOREIGN KEY (org_id, workflow_id) REFERENCES workflows (org_id, id),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id),
    FOREIGN KEY (org_id, resource_id) REFERENCES resources (org_id, id),
    CONSTRAINT steps_wait CHECK (state <> 'waiting' OR (wait_reason IS NOT NULL AND wait_on IS NOT NULL AND wait_deadline IS NOT NULL))
);

-- A change is one proposed mutation: plan, decision, apply. effect is the
-- document whose digest people approve (capsule.Effect); plan is what they are
-- shown, redacted. A retry is a new change that names the old one.
CREATE TABLE changes (
    id                     text PRIMARY KEY,
    org_id                 text NOT NULL REFERENCES orgs,
    install_id             text NOT NULL,
    workflow_id            text NOT NULL,
    step_id                text NOT NULL,
    resource_id            text,
    kind                   text NOT NULL CHECK (kind IN ('deploy', 'teardown', 'script', 'secret_sync', 'break_glass', 'runner_update')),
    state                  text NOT NULL DEFAULT 'preparing' CHECK (state IN ('preparing', 'proposed', 'approved', 'executing', 'applied', 'no_change', 'denied', 'superseded', 'stale', 'refused', 'failed', 'uncertain')),
    release_id             text,
    revision_id            text,
    artifact_repository    text,
    artifact_digest        text,
    inputs_version         int NOT NULL,
    state_version          int NOT NULL,
    plan_job_id            text,
    apply_job_id           text,
    fence                  bigint,
    effect                 jsonb,
    effect_digest          text,
    plan_bytes_digest      text,
    plan                   jsonb,
    approved_effect_digest text,
    result                 jsonb,
    error                  text,
    remedy                 text,
    differs                jsonb NOT NULL DEFAULT '[]',
    pinned                 text,
    replaces               text,
    wait_reason            text,
    wait_on                text,
    wait_deadline          timestamptz,
    created_at             timestamptz NOT NULL DEFAULT now(),
    proposed_at            timestamptz,
    decided_at             timestamptz,
    executed_at            timestamptz,
    finished_at            timestamptz,
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id),
    FOREIGN KEY (org_id, workflow_id) REFERENCES workflows (org_id, id),
    FOREIGN KEY (org_id, step_id) REFERENCES steps (org_id, id),
    FOREIGN KEY (org_id, resource_id) REFERENCES resources (org_id, id),
    FOREIGN KEY (org_id, replaces) REFERENCES changes (org_id, id),
    CONSTRAINT changes_wait CHECK (state <> 'proposed' OR (wait_reason IS NOT NULL AND wait_on IS NOT NULL AND wait_deadline IS NOT NULL)),
    CONSTRAINT changes_effect CHECK (state NOT IN ('proposed', 'approved', 'executing', 'applied') OR effect_digest IS NOT NULL)
);
CREATE INDEX changes_list ON changes (org_id, created_at DESC, id);
CREATE INDEX changes_proposed ON changes (org_id, install_id) WHERE state = 'proposed';
-- At most one change executes per resource; the lock says the same.
CREATE UNIQUE INDEX changes_one_executing ON changes (org_id, resource_id) WHERE state = 'executing' AND resource_id IS NOT NULL;

CREATE TABLE decisions (
    id            text PRIMARY KEY,
    org_id        text NOT NULL REFERENCES orgs,
    change_id     text NOT NULL,
    answer        text NOT NULL CHECK (answer IN ('approve', 'deny')),
    effect_digest text NOT NULL,
    actor         text NOT NULL,
    rule          text NOT NULL DEFAULT 'person' CHECK (rule IN ('person', 'approve_all', 'kept', 'no_change', 'read_only')),
    note          text NOT NULL DEFAULT '',
    created_at    timestamptz NOT NULL DEFAULT now(),
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, change_id) REFERENCES changes (org_id, id)
);
CREATE INDEX decisions_change ON decisions (org_id, change_id);

-- A run of an action: asked for by a person or a workflow, or started by the
-- runner's own scheduler. key makes a report idempotent: for cron it is
-- "<action>@<scheduled time>", else the run's own id.
CREATE TABLE action_runs (
    id           text PRIMARY KEY,
    org_id       text NOT NULL REFERENCES orgs,
    install_id   text NOT NULL,
    action       text NOT NULL,
    trigger      text NOT NULL,
    key          text NOT NULL,
    scheduled_at timestamptz,
    change_id    text,
    workflow_id  text,
    runner_id    text,
    state        text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'missed')),
    exit_code    int,
    outputs      jsonb NOT NULL DEFAULT '{}',
    inputs       jsonb NOT NULL DEFAULT '{}',
    error        text,
    stream_id    text,
    created_by   text NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    started_at   timestamptz,
    finished_at  timestamptz,
    reported_at  timestamptz,
    UNIQUE (org_id, id),
    UNIQUE (org_id, install_id, key),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id),
    FOREIGN KEY (org_id, change_id) REFERENCES changes (org_id, id),
    FOREIGN KEY (org_id, workflow_id) REFERENCES workflows (org_id, id)
);
CREATE INDEX action_runs_list ON action_runs (org_id, install_id, action, created_at DESC);

-- What happened in a workflow, in order and without gaps: seq is handed out
-- under the workflow's row lock.
CREATE TABLE workflow_events (
    org_id      text NOT NULL REFERENCES orgs,
    workflow_id text NOT NULL,
    seq         bigint NOT NULL,
    at          timestamptz NOT NULL DEFAULT now(),
    kind        text NOT NULL,
    body        jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (org_id, workflow_id, seq),
    FOREIGN KEY (org_id, workflow_id) REFERENCES workflows (org_id, id)
);

SELECT berth.tenant_table('workflows');
SELECT berth.tenant_table('steps');
SELECT berth.tenant_table('changes');
SELECT berth.tenant_table('decisions');
SELECT berth.tenant_table('action_runs');
SELECT berth.tenant_table('workflow_events');

GRANT SELECT, INSERT, UPDATE ON workflows, steps, changes, action_runs TO berth_ctl;
GRANT SELECT, INSERT ON decisions, workflow_events TO berth_ctl;
GRANT SELECT ON changes, workflows TO berth_runner;
GRANT SELECT, INSERT, UPDATE ON action_runs TO berth_runner;
GRANT SELECT ON workflows, steps, changes, action_runs TO berth_sys;
