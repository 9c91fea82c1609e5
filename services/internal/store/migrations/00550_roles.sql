-- Roles that only the customer switches on, as the install's runner tells of them. The
-- switch itself stays on the customer's side: nothing here makes the runner take a role
-- for on.

-- +goose Up

-- The break-glass and custom roles of the release that the runner accepted last. written
-- is the name as the app writes it, name what it is called in this install, as far as that
-- is known. switch_id is the switch by which the role is on; without one it is off.
-- runner-api writes it.
CREATE TABLE install_roles (
    org_id       text NOT NULL REFERENCES orgs,
    install_id   text NOT NULL,
    written      text NOT NULL CHECK (length(written) BETWEEN 1 AND 1000),
    name         text NOT NULL CHECK (length(name) BETWEEN 1 AND 1000),
    known        boolean NOT NULL,
    kind         text NOT NULL CHECK (kind IN ('break_glass', 'custom')),
    display_name text NOT NULL DEFAULT '',
    description  text NOT NULL DEFAULT '',
    switch_id    text,
    PRIMARY KEY (org_id, install_id, written),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id)
);

-- Each time that a role was switched, once by its id, in the order in which the runner
-- told of them (n). runner-api writes it. Until ctl-api has started what a switch starts,
-- handled_at is null; workflow_id is that workflow, null where nothing was to be started.
CREATE TABLE role_switches (
    org_id      text NOT NULL REFERENCES orgs,
    install_id  text NOT NULL,
    id          text NOT NULL,
    n           bigint GENERATED ALWAYS AS IDENTITY,
    role        text NOT NULL CHECK (length(role) BETWEEN 1 AND 1000),
    name        text NOT NULL CHECK (length(name) BETWEEN 1 AND 1000),
    enabled     boolean NOT NULL,
    switched_at timestamptz NOT NULL,
    until       timestamptz,
    switched_by text NOT NULL,
    reason      text NOT NULL DEFAULT '',
    told_at     timestamptz NOT NULL DEFAULT now(),
    handled_at  timestamptz,
    workflow_id text,
    PRIMARY KEY (org_id, install_id, id),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id),
    FOREIGN KEY (org_id, workflow_id) REFERENCES workflows (org_id, id),
    CONSTRAINT role_switches_handled CHECK (workflow_id IS NULL OR handled_at IS NOT NULL),
    CONSTRAINT role_switches_until CHECK (until IS NULL OR enabled)
);
CREATE INDEX role_switches_open ON role_switches (org_id, install_id, n) WHERE handled_at IS NULL;

SELECT berth.tenant_table('install_roles');
SELECT berth.tenant_table('role_switches');
GRANT SELECT ON install_roles TO berth_ctl;
GRANT SELECT, UPDATE (handled_at, workflow_id) ON role_switches TO berth_ctl;
GRANT SELECT, INSERT, DELETE, UPDATE (name, known, kind, display_name, description, switch_id) ON install_roles TO berth_runner;
GRANT SELECT (org_id, install_id, id), INSERT (org_id, install_id, id, role, name, enabled, switched_at, until, switched_by, reason) ON role_switches TO berth_runner;
GRANT SELECT (org_id, install_id, written, name, known, switch_id) ON install_roles TO berth_sys;

-- +goose StatementBegin
CREATE FUNCTION berth.role_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    PERFORM berth.emit(NEW.org_id, CASE WHEN NEW.enabled THEN 'role.enabled' ELSE 'role.disabled' END, NULL, NEW.install_id,
        jsonb_build_object('role', NEW.name, 'switch_id', NEW.id, 'until', NEW.until,
            'actor', CASE WHEN NEW.switched_by = 'berth-runner' THEN NEW.switched_by ELSE 'customer: ' || NEW.switched_by END));
    RETURN NULL;
END $$;
-- +goose StatementEnd
SELECT berth.system_function('berth.role_happened()', VARIADIC '{}'::name[]);
CREATE TRIGGER happened_new AFTER INSERT ON role_switches FOR EACH ROW EXECUTE FUNCTION berth.role_happened();

-- As in 00420; switches of roles are in the timeline too.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION berth.in_timeline(kind text, body jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE kind
        WHEN 'step.skipped' THEN body ? 'actor'
        WHEN 'change.approved' THEN coalesce(body ->> 'rule', 'person') <> 'read_only'
        WHEN 'drift.changed' THEN body ->> 'from' = 'drifted' OR body ->> 'to' = 'drifted'
        ELSE kind IN (
            'action_run.cancelled', 'action_run.failed', 'action_run.missed', 'action_run.succeeded', 'approval_policy.changed',
            'change.applied', 'change.denied', 'change.failed', 'change.proposed', 'change.refused', 'change.uncertain',
            'check.changed', 'config.created', 'freeze.added', 'freeze.overridden', 'freeze.removed', 'health.changed', 'inputs.changed',
            'install.created', 'install.deprovisioned', 'install.deprovisioning', 'install.forgotten', 'install.live', 'install.paused', 'install.provisioning',
            'install.resumed', 'install.updated',
            'release.created', 'resource.orphaned', 'role.disabled', 'role.enabled',
            'runner.enrolled', 'runner.offline', 'runner.online', 'runner.revoked', 'runner.switched',
            'secret.removed', 'secret.set', 'variables.changed', 'workflow.cancelled', 'workflow.failed', 'workflow.queued', 'workflow.succeeded')
    END;
-- +goose StatementEnd

-- As in 00485; steps may wait for a role of the customer.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION berth.stuck_workflows() RETURNS text[]
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = berth, pg_temp AS $$
    SELECT coalesce(array_agg(w.id ORDER BY w.id), '{}')
    FROM workflows w JOIN installs i ON i.org_id = w.org_id AND i.id = w.install_id
    CROSS JOIN LATERAL (
        SELECT bool_or(s.state IN ('running', 'waiting')) AS at_work, bool_or(s.state IN ('failed', 'cancelled')) AS failed,
               array_agg(s.name) FILTER (WHERE s.state IN ('succeeded', 'skipped')) AS done
        FROM steps s WHERE s.org_id = w.org_id AND s.workflow_id = w.id
    ) t
    WHERE w.state IN ('queued', 'running', 'waiting') AND (
        w.state = 'queued' OR w.cancel_requested_at IS NOT NULL OR t.failed OR t.at_work IS NOT TRUE
        OR EXISTS (SELECT FROM steps p WHERE p.org_id = w.org_id AND p.workflow_id = w.id AND p.state = 'pending' AND p.needs <@ coalesce(t.done, '{}'))
        OR EXISTS (
            SELECT FROM steps s WHERE s.org_id = w.org_id AND s.workflow_id = w.id AND s.state IN ('running', 'waiting')
              AND NOT EXISTS (SELECT FROM runner_jobs j WHERE j.org_id = s.org_id AND j.workflow_id = s.workflow_id AND j.step_id = s.id AND j.state IN ('queued', 'leased'))
              AND NOT (s.state = 'waiting' AND s.wait_deadline > now() AND (s.wait_retry_at IS NULL OR s.wait_retry_at > now()) AND CASE s.wait_reason
                WHEN 'decision' THEN NOT (w.approve_all OR i.approval_option = 'approve_all') AND EXISTS (
                    SELECT FROM changes c WHERE c.org_id = s.org_id AND c.id = s.change_id AND c.state = 'proposed' AND c.wait_deadline = s.wait_deadline
                      AND c.approved_effect_digest IS DISTINCT FROM c.effect_digest)
                WHEN 'lock' THEN EXISTS (
                    SELECT FROM changes c WHERE c.org_id = s.org_id AND c.id = s.change_id AND c.state = 'approved') AND EXISTS (
                    SELECT FROM changes h WHERE h.org_id = s.org_id AND h.id = s.wait_on AND h.state IN ('approved', 'executing'))
                WHEN 'runner' THEN NOT EXISTS (
                    SELECT FROM runners r WHERE r.org_id = s.org_id AND r.install_id = s.install_id AND r.state = 'active' AND r.public_key IS NOT NULL)
                WHEN 'stack' THEN coalesce((
                    SELECT k.state FROM stack_versions k WHERE k.org_id = s.org_id AND k.install_id = s.install_id ORDER BY k.version DESC LIMIT 1), '') <> 'active'
                WHEN 'freeze' THEN EXISTS (
                    SELECT FROM freezes f WHERE f.org_id = s.org_id AND f.id = s.wait_on AND f.removed_at IS NULL)
                WHEN 'paused_by_vendor' THEN i.paused_at IS NOT NULL
                WHEN 'secret_missing' THEN EXISTS (
                    SELECT FROM install_secrets x WHERE x.org_id = s.org_id AND x.install_id = s.install_id AND x.needed AND NOT x.present)
                WHEN 'role_off' THEN NOT EXISTS (
                    SELECT FROM install_roles y WHERE y.org_id = s.org_id AND y.install_id = s.install_id AND y.name = s.wait_on AND y.switch_id IS NOT NULL)
                WHEN 'role_unknown' THEN NOT EXISTS (
                    SELECT FROM install_roles y WHERE y.org_id = s.org_id AND y.install_id = s.install_id AND y.known AND s.wait_on IN (y.written, y.name))
                WHEN 'release' THEN EXISTS (
                    SELECT FROM steps a LEFT JOIN changes ac ON ac.org_id = a.org_id AND ac.id = a.change_id
                    WHERE a.org_id = s.org_id AND a.workflow_id = s.workflow_id AND a.kind = 'accept' AND a.state IN ('pending', 'running', 'waiting')
                      AND s.wait_on = coalesce(a.change_id, a.id) AND (ac.wait_deadline IS NULL OR ac.wait_deadline = s.wait_deadline))
                ELSE false END)))
$$;
-- +goose StatementEnd
