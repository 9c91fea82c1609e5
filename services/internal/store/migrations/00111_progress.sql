-- +goose Up

-- What the engine of a leased job does right now, for people who watch: told with
-- the renewal of its lease, in place of what was told before. NULL when there is
-- nothing to tell. It goes when the lease ends.
ALTER TABLE leases
    ADD COLUMN progress    jsonb CHECK (octet_length(progress::text) <= 4000),
    ADD COLUMN progress_at timestamptz,
    ADD CONSTRAINT leases_progress_at CHECK ((progress IS NULL) = (progress_at IS NULL));
GRANT UPDATE (progress, progress_at) ON leases TO berth_runner;
