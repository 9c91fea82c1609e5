-- +goose Up

-- When a person asked for a workflow: when it was made, or a failed step of it was
-- last retried. Of two changes to the same thing, the one of the newer request wins.
ALTER TABLE workflows ADD COLUMN requested_at timestamptz NOT NULL DEFAULT clock_timestamp();
UPDATE workflows SET requested_at = created_at;
