-- What runners do by themselves about unhealthy checks.

-- +goose Up

-- All that a runner did about one check until it stayed healthy, as it told last: of two
-- reports the one with the higher seq counts. runner-api writes it. One that needs attention
-- and has not ended is open: a person has to look.
CREATE TABLE remediations (
    id          text NOT NULL,
    org_id      text NOT NULL REFERENCES orgs,
    install_id  text NOT NULL,
    check_name  text NOT NULL CHECK (length(check_name) BETWEEN 1 AND 150),
    action      text NOT NULL CHECK (length(action) BETWEEN 1 AND 128),
    resource_id text,
    seq         bigint NOT NULL,
    state       text NOT NULL CHECK (state IN ('waiting', 'running', 'helped', 'recovered', 'needs_attention', 'dropped')),
    why         text NOT NULL DEFAULT '' CHECK (length(why) <= 4096),
    attempts    int NOT NULL CHECK (attempts BETWEEN 0 AND 1000),
    attempts_of int NOT NULL CHECK (attempts_of BETWEEN 0 AND 1000),
    reverted    boolean NOT NULL DEFAULT false,
    began_at    timestamptz NOT NULL,
    changed_at  timestamptz NOT NULL,
    ended_at    timestamptz,
    told_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, id), -- runners choose the ids
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id),
    FOREIGN KEY (org_id, resource_id) REFERENCES resources (org_id, id),
    CONSTRAINT remediations_end CHECK (ended_at IS NOT NULL OR state NOT IN ('recovered', 'dropped'))
);
CREATE INDEX remediations_list ON remediations (org_id, install_id, id DESC);
CREATE INDEX remediations_open ON remediations (org_id, install_id) WHERE ended_at IS NULL;
CREATE INDEX remediations_recent ON remediations (org_id, changed_at);

SELECT berth.tenant_table('remediations');
GRANT SELECT ON remediations TO berth_ctl;
GRANT SELECT, INSERT, UPDATE (action, seq, state, why, attempts, attempts_of, reverted, changed_at, ended_at, told_at) ON remediations TO berth_runner;

-- Which remediation a run is an attempt of, and the number of the attempt. There is no
-- foreign key: a run may be told before its remediation is.
ALTER TABLE action_runs ADD COLUMN remediation_id text, ADD COLUMN remediation_attempt int;
GRANT INSERT (remediation_id, remediation_attempt) ON action_runs TO berth_runner;
DROP POLICY runner_reports_schedules ON action_runs;
CREATE POLICY runner_reports_schedules ON action_runs AS RESTRICTIVE FOR INSERT TO berth_runner
    WITH CHECK (num_nonnulls(change_id, workflow_id) = 0
        AND (trigger = 'cron' AND remediation_id IS NULL OR trigger = 'remediation' AND remediation_id IS NOT NULL));

-- What holds an attempt back: another change of the install, and how the org's other
-- remediations of the same app go.
GRANT SELECT (locked_by) ON resources TO berth_runner;
GRANT SELECT (app_id) ON installs TO berth_runner;
GRANT SELECT (org_id, install_id, number, state) ON workflows TO berth_runner;

-- +goose StatementBegin
CREATE FUNCTION berth.remediation_happened() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
DECLARE
    about jsonb := jsonb_build_object('remediation_id', NEW.id, 'check', NEW.check_name, 'action', NEW.action, 'resource_id', NEW.resource_id,
        'attempts', NEW.attempts, 'attempts_of', NEW.attempts_of, 'reverted', NEW.reverted, 'why', NEW.why);
BEGIN
    IF NEW.attempts > 0 AND (TG_OP = 'INSERT' OR OLD.attempts = 0) THEN
        PERFORM berth.emit(NEW.org_id, 'remediation.started', NULL, NEW.install_id, about);
    END IF;
    IF NEW.state IN ('helped', 'needs_attention') AND (TG_OP = 'INSERT' OR OLD.state <> NEW.state) THEN
        PERFORM berth.emit(NEW.org_id, 'remediation.' || NEW.state, NULL, NEW.install_id, about);
    END IF;
    RETURN NULL;
END $$;

-- As in 00570; remediations and alerts are in the timeline too.
CREATE OR REPLACE FUNCTION berth.in_timeline(kind text, body jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE kind
        WHEN 'step.skipped' THEN body ? 'actor'
        WHEN 'change.approved' THEN coalesce(body ->> 'rule', 'person') <> 'read_only'
        WHEN 'drift.changed' THEN body ->> 'from' = 'drifted' OR body ->> 'to' = 'drifted'
        ELSE kind IN (
            'action_run.cancelled', 'action_run.failed', 'action_run.missed', 'action_run.succeeded', 'alert.acknowledged', 'alert.closed', 'alert.joined', 'alert.opened',
            'approval_policy.changed',
            'change.applied', 'change.denied', 'change.failed', 'change.proposed', 'change.refused', 'change.uncertain',
            'check.changed', 'config.created', 'consent.denied', 'consent.given', 'freeze.added', 'freeze.overridden', 'freeze.removed', 'health.changed', 'inputs.changed',
            'install.created', 'install.deprovisioned', 'install.deprovisioning', 'install.forgotten', 'install.live', 'install.paused', 'install.provisioning',
            'install.resumed', 'install.updated',
            'policy.overridden', 'release.created', 'remediation.helped', 'remediation.needs_attention', 'remediation.started', 'resource.orphaned', 'role.disabled', 'role.enabled',
            'runner.enrolled', 'runner.offline', 'runner.online', 'runner.revoked', 'runner.switched',
            'secret.removed', 'secret.set', 'variables.changed', 'workflow.cancelled', 'workflow.failed', 'workflow.queued', 'workflow.succeeded')
    END;
-- +goose StatementEnd
SELECT berth.system_function('berth.remediation_happened()', VARIADIC '{}'::name[]);
CREATE TRIGGER happened_new AFTER INSERT ON remediations FOR EACH ROW EXECUTE FUNCTION berth.remediation_happened();
CREATE TRIGGER happened_change AFTER UPDATE ON remediations FOR EACH ROW
    WHEN (OLD.state <> NEW.state OR OLD.attempts <> NEW.attempts) EXECUTE FUNCTION berth.remediation_happened();
