-- An alert for an objective that is missed, and when an install was last held against its own.

-- +goose Up

ALTER TABLE alerts DROP CONSTRAINT alerts_kind_check;
ALTER TABLE alerts ADD CONSTRAINT alerts_kind_check CHECK (kind IN ('unhealthy', 'runner_silent', 'waiting_too_long', 'workflow_failed', 'expiring', 'chain_unreported',
                                                                    'drift', 'objective'));

-- What ctl-api counted of the health of an install with an objective: the history is read
-- once an hour, not with each look.
CREATE TABLE objective_looks (
    org_id            text NOT NULL REFERENCES orgs,
    install_id        text NOT NULL,
    objective         float8 NOT NULL,
    unhealthy_seconds float8 NOT NULL,
    unknown_seconds   float8 NOT NULL,
    looked_at         timestamptz NOT NULL,
    PRIMARY KEY (org_id, install_id),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id)
);

SELECT berth.tenant_table('objective_looks');
GRANT SELECT, INSERT, UPDATE (objective, unhealthy_seconds, unknown_seconds, looked_at) ON objective_looks TO berth_ctl;

-- +goose StatementBegin
-- As in 00610, with the kind that is new.
CREATE OR REPLACE FUNCTION berth.alert_counts() RETURNS TABLE (kind text, value float8)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = berth, pg_temp AS $$
    SELECT k.kind, count(a.id)
    FROM unnest('{unhealthy,runner_silent,waiting_too_long,workflow_failed,expiring,chain_unreported,drift,objective}'::text[]) k(kind)
    LEFT JOIN alerts a ON a.kind = k.kind AND a.state = 'open'
    GROUP BY k.kind
$$;
-- +goose StatementEnd
SELECT berth.system_function('berth.alert_counts()', 'berth_ctl');
