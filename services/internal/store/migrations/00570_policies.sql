-- What rules say of plans: the vendor's policies and the customer's guardrails.

-- +goose Up

-- A word that is no keyword.
ALTER TABLE consents RENAME COLUMN by TO answered_by;
-- Whose change it is, and which effect it has.
GRANT SELECT (org_id, id, install_id, effect_digest) ON changes TO berth_runner;

-- What one policy says of the plan of one change. side is whose it is. passed … unknown
-- count its verdicts; findings are those that stand against the change, the worst first,
-- as policy.Verdict without what their row says, and findings_left how many more there are.
-- ctl-api writes it, from what the runner reports.
CREATE TABLE policy_reports (
    org_id        text NOT NULL REFERENCES orgs,
    install_id    text NOT NULL,
    change_id     text NOT NULL,
    side          text NOT NULL CHECK (side IN ('vendor', 'customer')),
    policy        text NOT NULL CHECK (length(policy) BETWEEN 1 AND 1000),
    engine        text NOT NULL,
    answer        text NOT NULL CHECK (answer IN ('allow', 'warn', 'ask', 'deny')),
    severity      text NOT NULL DEFAULT '',
    passed        int NOT NULL,
    failed        int NOT NULL,
    warned        int NOT NULL,
    errored       int NOT NULL,
    skipped       int NOT NULL,
    unknown       int NOT NULL,
    findings      jsonb NOT NULL DEFAULT '[]',
    findings_left int NOT NULL DEFAULT 0,
    judged_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, change_id, side, policy),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id),
    FOREIGN KEY (org_id, change_id) REFERENCES changes (org_id, id)
);
CREATE INDEX policy_reports_list ON policy_reports (org_id, change_id DESC, side, policy);
CREATE INDEX policy_reports_install ON policy_reports (org_id, install_id, change_id DESC, side, policy);

-- That a person lets one effect pass which policies of the vendor deny, in one install and
-- until a time. The denied change is the one that they looked at. ctl-api writes it.
CREATE TABLE policy_overrides (
    org_id        text NOT NULL REFERENCES orgs,
    install_id    text NOT NULL,
    change_id     text NOT NULL,
    effect_digest text NOT NULL,
    reason        text NOT NULL CHECK (length(reason) BETWEEN 1 AND 1000),
    actor         text NOT NULL,
    account_id    text,
    created_at    timestamptz NOT NULL DEFAULT now(),
    until         timestamptz NOT NULL,
    PRIMARY KEY (org_id, change_id),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id),
    FOREIGN KEY (org_id, change_id) REFERENCES changes (org_id, id)
);
CREATE INDEX policy_overrides_effect ON policy_overrides (org_id, install_id, effect_digest, until);

SELECT berth.tenant_table('policy_reports');
SELECT berth.tenant_table('policy_overrides');
GRANT SELECT, INSERT ON policy_reports TO berth_ctl;
GRANT SELECT, INSERT ON policy_overrides TO berth_ctl;

-- +goose StatementBegin
CREATE FUNCTION berth.policy_overridden() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    PERFORM berth.emit(NEW.org_id, 'policy.overridden', NULL, NEW.install_id,
        jsonb_build_object('change_id', NEW.change_id, 'effect_digest', NEW.effect_digest, 'reason', NEW.reason, 'until', NEW.until, 'actor', NEW.actor));
    RETURN NULL;
END $$;
-- +goose StatementEnd
SELECT berth.system_function('berth.policy_overridden()', VARIADIC '{}'::name[]);
CREATE TRIGGER happened_new AFTER INSERT ON policy_overrides FOR EACH ROW EXECUTE FUNCTION berth.policy_overridden();

-- +goose StatementBegin
CREATE FUNCTION berth.consent_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
BEGIN
    PERFORM berth.emit(NEW.org_id, 'consent.' || NEW.state, NULL, NEW.install_id,
        jsonb_build_object('change_id', NEW.change_id, 'effect_digest', NEW.effect_digest, 'reason', NEW.why, 'until', NEW.until,
            'actor', 'customer: ' || array_to_string(NEW.answered_by, ', ')));
    RETURN NULL;
END $$;
-- +goose StatementEnd
SELECT berth.system_function('berth.consent_happened()', VARIADIC '{}'::name[]);
CREATE TRIGGER happened_new AFTER INSERT ON consents FOR EACH ROW EXECUTE FUNCTION berth.consent_happened();
CREATE TRIGGER happened_change AFTER UPDATE ON consents FOR EACH ROW
    WHEN (OLD.state <> NEW.state OR OLD.effect_digest <> NEW.effect_digest) EXECUTE FUNCTION berth.consent_happened();

-- As in 00550; what the customer agreed to and overrides of policies are in the timeline too.
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
            'check.changed', 'config.created', 'consent.denied', 'consent.given', 'freeze.added', 'freeze.overridden', 'freeze.removed', 'health.changed', 'inputs.changed',
            'install.created', 'install.deprovisioned', 'install.deprovisioning', 'install.forgotten', 'install.live', 'install.paused', 'install.provisioning',
            'install.resumed', 'install.updated',
            'policy.overridden', 'release.created', 'resource.orphaned', 'role.disabled', 'role.enabled',
            'runner.enrolled', 'runner.offline', 'runner.online', 'runner.revoked', 'runner.switched',
            'secret.removed', 'secret.set', 'variables.changed', 'workflow.cancelled', 'workflow.failed', 'workflow.queued', 'workflow.succeeded')
    END;
-- +goose StatementEnd

-- As in 00550; steps may wait for the consent of the customer.
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
                WHEN 'consent' THEN EXISTS (
                    SELECT FROM consents z JOIN changes zc ON zc.org_id = z.org_id AND zc.id = z.change_id
                    WHERE z.org_id = s.org_id AND z.change_id = s.change_id AND z.state = 'needed' AND zc.state = 'approved')
                WHEN 'release' THEN EXISTS (
                    SELECT FROM steps a LEFT JOIN changes ac ON ac.org_id = a.org_id AND ac.id = a.change_id
                    WHERE a.org_id = s.org_id AND a.workflow_id = s.workflow_id AND a.kind = 'accept' AND a.state IN ('pending', 'running', 'waiting')
                      AND s.wait_on = coalesce(a.change_id, a.id) AND (ac.wait_deadline IS NULL OR ac.wait_deadline = s.wait_deadline))
                ELSE false END)))
$$;
-- +goose StatementEnd
