-- What single components of an install are by the install's own word: switched
-- on or off (installs.toggles), and values that win over all others.

-- +goose Up

-- {"<component>": {"helm_values": "…", "tf_vars": "…"}}: part of the version, so
-- that a workflow pins it with the inputs.
ALTER TABLE install_inputs ADD COLUMN overrides jsonb NOT NULL DEFAULT '{}';

-- Counts the changes of toggles. A workflow that deploys every component says
-- which of them it was made with.
ALTER TABLE installs ADD COLUMN toggles_version int NOT NULL DEFAULT 0;
ALTER TABLE workflows ADD COLUMN toggles_version int NOT NULL DEFAULT 0;
