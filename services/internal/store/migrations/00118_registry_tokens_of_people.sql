-- +goose Up

-- People pull from the org's registry too, with a token that is short-lived and made
-- with one of theirs (token_id); repositories narrows what it sees to one repository
-- and those below it, '' for all of the org.
ALTER TABLE registry_tokens
    ADD COLUMN token_id     text,
    ADD COLUMN repositories text NOT NULL DEFAULT '',
    ADD FOREIGN KEY (org_id, token_id) REFERENCES tokens (org_id, id) ON DELETE CASCADE;
CREATE INDEX registry_tokens_of_people ON registry_tokens (org_id, token_id) WHERE token_id IS NOT NULL;

GRANT INSERT (hash, org_id, actions, expires_at, token_id, repositories), SELECT (token_id, expires_at) ON registry_tokens TO berth_ctl;
GRANT SELECT (repositories) ON registry_tokens TO berth_builder;

-- ctl-api gives out nothing that can push, and nothing that outlives half a day.
CREATE POLICY ctl_tokens_of_people ON registry_tokens AS RESTRICTIVE FOR INSERT TO berth_ctl
    WITH CHECK (token_id IS NOT NULL AND runner_id IS NULL AND actions = ARRAY['pull'] AND expires_at <= now() + interval '12 hours');

-- What was made with a token ends with it, however that ends.
-- +goose StatementBegin
CREATE FUNCTION berth.revoke_registry_tokens() RETURNS trigger
    LANGUAGE plpgsql SET search_path = berth, pg_temp AS $$
BEGIN
    UPDATE registry_tokens SET revoked_at = NEW.revoked_at WHERE org_id = NEW.org_id AND token_id = NEW.id AND revoked_at IS NULL;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER revoke_registry_tokens AFTER UPDATE OF revoked_at ON tokens
    FOR EACH ROW WHEN (OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL) EXECUTE FUNCTION berth.revoke_registry_tokens();
