-- What the customer's side agreed to, as the install's runner tells of it. The runner goes
-- by its own records: nothing here makes it start anything.

-- +goose Up

-- The newest word of the customer's side on a change. by are the names of the keys that
-- agreed or denied, still is how many more have to agree. runner-api writes it.
CREATE TABLE consents (
    org_id        text NOT NULL REFERENCES orgs,
    install_id    text NOT NULL,
    change_id     text NOT NULL,
    effect_digest text NOT NULL,
    state         text NOT NULL CHECK (state IN ('needed', 'given', 'denied')),
    why           text NOT NULL DEFAULT '' CHECK (length(why) <= 1000),
    by            text[] NOT NULL DEFAULT '{}',
    still         int NOT NULL DEFAULT 0 CHECK (still BETWEEN 0 AND 20),
    answered_at   timestamptz,
    until         timestamptz,
    told_at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, change_id),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id),
    FOREIGN KEY (org_id, change_id) REFERENCES changes (org_id, id)
);
CREATE INDEX consents_install ON consents (org_id, install_id);

SELECT berth.tenant_table('consents');
GRANT SELECT ON consents TO berth_ctl;
GRANT SELECT, INSERT, UPDATE (effect_digest, state, why, by, still, answered_at, until, told_at) ON consents TO berth_runner;
GRANT SELECT (org_id, change_id, effect_digest, state) ON consents TO berth_sys;
