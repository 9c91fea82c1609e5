-- Accounts of people whom an OpenID Connect provider vouches for.

-- +goose Up

-- The subject is who somebody is at the issuer, and stays when a name or an address changes.
CREATE TABLE account_identities (
    org_id        text NOT NULL REFERENCES orgs,
    issuer        text NOT NULL,
    subject       text NOT NULL,
    account_id    text NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    last_login_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, issuer, subject),
    UNIQUE (org_id, account_id),
    FOREIGN KEY (org_id, account_id) REFERENCES accounts (org_id, id)
);

SELECT berth.tenant_table('account_identities');
GRANT SELECT, INSERT, UPDATE (last_login_at) ON account_identities TO berth_ctl;
GRANT SELECT ON account_identities, grants TO berth_sys;
GRANT INSERT, DELETE ON grants TO berth_sys;

-- set_grant_of_identity gives such an account this role in the whole org and no other grant;
-- an empty role takes all. It answers whether that changed anything. ctl-api itself cannot
-- take grants away, and by this function only from accounts that a provider vouches for, of
-- the org that it works in.
-- +goose StatementBegin
CREATE FUNCTION berth.set_grant_of_identity(account text, new_role text, grant_id text, granter text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp AS $$
DECLARE
    org   text := berth.current_org();
    taken int;
    given int := 0;
BEGIN
    IF new_role NOT IN ('', 'admin', 'operator', 'viewer') THEN
        RAISE EXCEPTION 'no identity provider gives the role %', new_role;
    END IF;
    PERFORM FROM account_identities i WHERE i.org_id = org AND i.account_id = account;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no identity provider vouches for %', account;
    END IF;
    DELETE FROM grants g WHERE g.org_id = org AND g.account_id = account
        AND (g.role <> new_role OR num_nonnulls(g.customer_id, g.app_id, g.install_id) > 0);
    GET DIAGNOSTICS taken = ROW_COUNT;
    IF new_role <> '' AND NOT EXISTS (SELECT FROM grants g WHERE g.org_id = org AND g.account_id = account) THEN
        INSERT INTO grants (id, org_id, account_id, role, created_by) VALUES (grant_id, org, account, new_role, granter);
        given := 1;
    END IF;
    RETURN taken + given > 0;
END $$;
-- +goose StatementEnd
SELECT berth.system_function('berth.set_grant_of_identity(text, text, text, text)', 'berth_ctl');
