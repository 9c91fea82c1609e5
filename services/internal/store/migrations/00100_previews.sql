-- +goose Up

-- What a preview could not know of a step: which outputs its templates read that
-- change before it (model.MayChange, a list). ctl-api writes it with the plan.
ALTER TABLE steps ADD COLUMN may_change jsonb NOT NULL DEFAULT '[]';

-- Versions of inputs and of state trees below 0 are of previews. They are never in
-- force.
ALTER TABLE installs ADD CONSTRAINT installs_in_force CHECK (inputs_version >= 0 AND state_version >= 0);
