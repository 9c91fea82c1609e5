-- +goose Up

-- Which token made this one: it does not outlive it, and can be revoked with it.
-- Empty for what `berth-ctl-api` made itself, and for tokens of before.
ALTER TABLE tokens ADD COLUMN made_with text;
ALTER TABLE tokens ADD CONSTRAINT tokens_made_with FOREIGN KEY (org_id, made_with) REFERENCES tokens (org_id, id);
CREATE INDEX tokens_made_with ON tokens (org_id, made_with) WHERE made_with IS NOT NULL;

-- runner-api asks whether settings that were good at a time name a run, and
-- writes down what a runner says keeps it from working.
GRANT SELECT (expires_at) ON settings_versions TO berth_runner;
GRANT SELECT (facts) ON runners TO berth_runner;
