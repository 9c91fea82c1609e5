-- How what is live differs from what was deployed.

-- +goose Up

-- drift_asked_at: when somebody last asked for a look; the runner's settings bring it.
ALTER TABLE resources ADD COLUMN drift_asked_at timestamptz;

-- A look for drift at what a change made live. runner-api writes what the runner found; a
-- look that failed (error) is no drift. ctl-api judges the newest ones and drops the others;
-- of all but the newest it drops the objects of the report, too.
CREATE TABLE drift_looks (
    org_id       text NOT NULL REFERENCES orgs,
    install_id   text NOT NULL,
    resource_id  text NOT NULL,
    scheduled_at timestamptz NOT NULL,
    change_id    text NOT NULL,
    run_id       text NOT NULL,
    looked_at    timestamptz NOT NULL,
    error        text CHECK (octet_length(error) BETWEEN 1 AND 4096),
    report       jsonb CHECK (octet_length(report::text) <= 1048576),
    reported_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, resource_id, scheduled_at),
    FOREIGN KEY (org_id, resource_id) REFERENCES resources (org_id, id),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id),
    CONSTRAINT drift_looks_outcome CHECK ((error IS NULL) <> (report IS NULL))
);
CREATE INDEX drift_looks_of_install ON drift_looks (org_id, install_id);

-- A time in which a resource drifted. ctl-api writes it. closed_by says how it ended: looks
-- found nothing any more, a change was deployed, or the resource is not looked at any more.
CREATE TABLE drift_episodes (
    id          text PRIMARY KEY,
    org_id      text NOT NULL REFERENCES orgs,
    install_id  text NOT NULL,
    resource_id text NOT NULL,
    change_id   text NOT NULL,
    class       text NOT NULL CHECK (class IN ('human_edit', 'real')),
    digest      text NOT NULL,
    opened_at   timestamptz NOT NULL,
    seen_at     timestamptz NOT NULL,
    closed_at   timestamptz,
    closed_by   text CHECK (closed_by IN ('clean', 'deployed', 'not_looked_at')),
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, resource_id) REFERENCES resources (org_id, id),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id),
    CONSTRAINT drift_episodes_closed CHECK ((closed_at IS NULL) = (closed_by IS NULL))
);
CREATE UNIQUE INDEX drift_episodes_open ON drift_episodes (org_id, resource_id) WHERE closed_at IS NULL;
CREATE INDEX drift_episodes_of_install ON drift_episodes (org_id, install_id, opened_at);

SELECT berth.tenant_table('drift_looks');
SELECT berth.tenant_table('drift_episodes');
GRANT SELECT (org_id, resource_id, scheduled_at), INSERT (org_id, install_id, resource_id, scheduled_at, change_id, run_id, looked_at, error, report)
    ON drift_looks TO berth_runner;
GRANT SELECT (org_id, id, install_id, kind, name, state, live_change_id) ON resources TO berth_runner;
GRANT SELECT, UPDATE (report), DELETE ON drift_looks TO berth_ctl;
GRANT SELECT, INSERT, UPDATE, DELETE ON drift_episodes TO berth_ctl;

-- The runs that look for drift are no news, as those of probes are none: drift.changed is.
DROP TRIGGER happened_new ON action_runs;
DROP TRIGGER happened ON action_runs;
CREATE TRIGGER happened_new AFTER INSERT ON action_runs
    FOR EACH ROW WHEN (NEW.action NOT LIKE 'component/%' AND NEW.action NOT LIKE 'drift/%') EXECUTE FUNCTION berth.run_happened();
CREATE TRIGGER happened AFTER UPDATE OF state ON action_runs
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state AND NEW.action NOT LIKE 'component/%' AND NEW.action NOT LIKE 'drift/%')
    EXECUTE FUNCTION berth.run_happened();
