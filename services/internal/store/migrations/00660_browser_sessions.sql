-- Sessions of browsers, and the one-time links that open them.

-- +goose Up

-- A session is a token that a browser holds in a cookie: never in a header of its own
-- making. It ends at expires_at, and when it was not used for idle_seconds.
ALTER TABLE tokens
    ADD COLUMN kind         text NOT NULL DEFAULT 'token' CHECK (kind IN ('token', 'session')),
    ADD COLUMN user_agent   text,
    ADD COLUMN idle_seconds int CHECK (idle_seconds > 0);
ALTER TABLE tokens ADD CONSTRAINT tokens_sessions_end CHECK (kind = 'token' OR num_nulls(expires_at, idle_seconds, last_used_at) = 0);
CREATE INDEX tokens_sessions ON tokens (org_id, id) WHERE kind = 'session' AND revoked_at IS NULL;
GRANT SELECT (idle_seconds) ON tokens TO berth_log;

-- Only the SHA-256 of a link is kept. The row goes with its use.
CREATE TABLE login_links (
    hash       bytea PRIMARY KEY,
    org_id     text NOT NULL REFERENCES orgs,
    made_with  text NOT NULL,
    expires_at timestamptz NOT NULL,
    FOREIGN KEY (org_id, made_with) REFERENCES tokens (org_id, id)
);
CREATE INDEX login_links_made_with ON login_links (org_id, made_with);

SELECT berth.tenant_table('login_links');
GRANT SELECT, INSERT, DELETE ON login_links TO berth_ctl;
GRANT SELECT ON login_links TO berth_sys;

-- +goose StatementBegin
CREATE FUNCTION berth.org_of_login_link(link_hash bytea) RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = berth, pg_temp AS $$
    SELECT org_id FROM login_links WHERE hash = link_hash
$$;
-- +goose StatementEnd
SELECT berth.system_function('berth.org_of_login_link(bytea)', 'berth_ctl');
