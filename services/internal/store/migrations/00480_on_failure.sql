-- What a workflow does after a step has failed, chosen when it is started: nothing
-- new begins (stop), or what does not need the failed step goes on (continue).

-- +goose Up
ALTER TABLE workflows ADD COLUMN on_failure text NOT NULL DEFAULT 'stop' CHECK (on_failure IN ('stop', 'continue'));
