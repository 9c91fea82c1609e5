-- +goose Up

-- Why and since when the customer's switch stands where it does, as the runner
-- reports it. Both are NULL until a runner has reported them.
ALTER TABLE runners
    ADD COLUMN switch_reason text,
    ADD COLUMN switch_since timestamptz;
GRANT SELECT (switch_reason, switch_since), UPDATE (switch_reason, switch_since) ON runners TO berth_runner;
