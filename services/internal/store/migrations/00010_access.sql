-- Who may do what: orgs, accounts, tokens, customers, grants, keys; the
-- request memory behind Idempotency-Key; the chains.
--
-- Names are unqualified: migrations and services connect with
-- search_path = berth. Every tenant table carries org_id, is keyed a second
-- time by (org_id, id), and refers to others by that pair, because foreign-key
-- checks do not see row-level security.

-- +goose Up

-- An org is a vendor's tenant. Its key column is called org_id so that one
-- policy text fits every table.
CREATE TABLE orgs (
    org_id     text PRIMARY KEY,
    name       text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT orgs_name_form CHECK (name ~ '^[a-z0-9][a-z0-9-]{0,62}$')
);
CREATE UNIQUE INDEX orgs_name ON orgs (name);

CREATE TABLE customers (
    id         text PRIMARY KEY,
    org_id     text NOT NULL REFERENCES orgs,
    name       text NOT NULL,
    labels     jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    UNIQUE (org_id, id)
);
CREATE UNIQUE INDEX customers_name ON customers (org_id, name) WHERE deleted_at IS NULL;

-- An account is a person or a machine that holds tokens.
CREATE TABLE accounts (
    id          text PRIMARY KEY,
    org_id      text NOT NULL REFERENCES orgs,
    kind        text NOT NULL CHECK (kind IN ('user', 'service')),
    name        text NOT NULL,
    email       text,
    created_at  timestamptz NOT NULL DEFAULT now(),
    disabled_at timestamptz,
    UNIQUE (org_id, id)
);
CREATE UNIQUE INDEX accounts_name ON accounts (org_id, name);

-- Only the SHA-256 of a token is kept; prefix is what a person recognises it by.
CREATE TABLE tokens (
    id           text PRIMARY KEY,
    org_id       text NOT NULL REFERENCES orgs,
    account_id   text NOT NULL,
    name         text NOT NULL,
    prefix       text NOT NULL,
    hash         bytea NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz,
    last_used_at timestamptz,
    revoked_at   timestamptz,
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, account_id) REFERENCES accounts (org_id, id)
);
CREATE UNIQUE INDEX tokens_hash ON tokens (hash);

-- A grant gives an account a role in the org, or only within one customer, app
-- or install (at most one of the three is set).
CREATE TABLE grants (
    id          text PRIMARY KEY,
    org_id      text NOT NULL REFERENCES orgs,
    account_id  text NOT NULL,
    role        text NOT NULL CHECK (role IN ('platform', 'admin', 'operator', 'viewer', 'customer')),
    customer_id text,
    app_id      text,
    install_id  text,
    created_at  timestamptz NOT NULL DEFAULT now(),
    created_by  text,
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, account_id) REFERENCES accounts (org_id, id),
    FOREIGN KEY (org_id, customer_id) REFERENCES customers (org_id, id),
    CONSTRAINT grants_one_scope CHECK (num_nonnulls(customer_id, app_id, install_id) <= 1)
);
CREATE INDEX grants_account ON grants (org_id, account_id);

-- Public halves of every key; private halves only of those that the control
-- plane itself uses (dispatch), sealed with the master key.
CREATE TABLE keys (
    id             text PRIMARY KEY,
    org_id         text NOT NULL REFERENCES orgs,
    install_id     text,
    purpose        text NOT NULL CHECK (purpose IN ('release', 'dispatch', 'runner', 'seal', 'customer')),
    algorithm      text NOT NULL CHECK (algorithm IN ('ed25519', 'x25519')),
    key_id         text NOT NULL,
    public_key     text NOT NULL,
    private_sealed bytea,
    created_at     timestamptz NOT NULL DEFAULT now(),
    retired_at     timestamptz,
    UNIQUE (org_id, id)
);
CREATE UNIQUE INDEX keys_key_id ON keys (org_id, key_id);
CREATE UNIQUE INDEX keys_one_dispatch ON keys (org_id) WHERE purpose = 'dispatch' AND retired_at IS NULL;

-- What a POST with an Idempotency-Key answered. status 0: still being worked on.
CREATE TABLE idempotency_keys (
    org_id     text NOT NULL REFERENCES orgs,
    account_id text NOT NULL,
    key        text NOT NULL,
    route      text NOT NULL,
    body_hash  bytea NOT NULL,
    status     int NOT NULL DEFAULT 0,
    response   bytea,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, account_id, key)
);

-- Chains: `chain` is an install's id (written by its runner, copied here) or the
-- org's id (written by ctl-api). body holds the exact bytes that were hashed.
CREATE TABLE chain_records (
    org_id      text NOT NULL REFERENCES orgs,
    chain       text NOT NULL,
    seq         bigint NOT NULL,
    prev        bytea NOT NULL,
    hash        bytea NOT NULL,
    body        bytea NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, chain, seq)
);
CREATE TABLE chain_heads (
    org_id     text NOT NULL REFERENCES orgs,
    chain      text NOT NULL,
    seq        bigint NOT NULL,
    hash       bytea NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, chain)
);

SELECT berth.tenant_table('orgs');
SELECT berth.tenant_table('customers');
SELECT berth.tenant_table('accounts');
SELECT berth.tenant_table('tokens');
SELECT berth.tenant_table('grants');
SELECT berth.tenant_table('keys');
SELECT berth.tenant_table('idempotency_keys');
SELECT berth.tenant_table('chain_records');
SELECT berth.tenant_table('chain_heads');

GRANT SELECT, INSERT, UPDATE ON orgs, customers, accounts, tokens, keys TO berth_ctl;
GRANT SELECT, INSERT, UPDATE, DELETE ON grants, idempotency_keys TO berth_ctl;
GRANT SELECT, INSERT ON chain_records TO berth_ctl, berth_runner;
GRANT SELECT, INSERT, UPDATE ON chain_heads TO berth_ctl, berth_runner;
GRANT SELECT ON orgs TO berth_runner, berth_builder, berth_log;
GRANT SELECT (id, org_id, install_id, purpose, algorithm, key_id, public_key, created_at, retired_at) ON keys TO berth_runner, berth_builder;
GRANT INSERT ON keys TO berth_runner;
-- log-ingest reads with user tokens.
GRANT SELECT ON accounts, tokens, grants TO berth_log;
GRANT SELECT ON orgs, tokens, customers TO berth_sys;
