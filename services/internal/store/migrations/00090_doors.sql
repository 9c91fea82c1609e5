-- +goose Up

-- Which token made this one: it does not outlive it, and can be revoked with it.
-- Empty for what `berth-ctl-api` made itself, and for tokens of before.
ALTER TABLE tokens ADD COLUMN made_with text;
ALTER TABLE tokens ADD CONSTRAINT tokens_made_with FOREIGN KEY (org_id, made_with) REFERENCES tokens (org_id, id);
CREATE INDEX tokens_made_with ON tokens (org_id, made_with) WHERE made_with IS NOT NULL;
