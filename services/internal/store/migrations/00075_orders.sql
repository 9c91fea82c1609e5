-- Signed orders: what a runner acts on, made with each job.

-- +goose Up

-- The order names the digest of the spec's bytes, so the text is kept as it was
-- written. No statement looks inside.
ALTER TABLE runner_jobs ALTER COLUMN spec TYPE json USING spec::json;

-- A DSSE envelope of a capsule.Order, passed on as it is. NULL for jobs of
-- before, which runners refuse by now; those of them that mutate had a capsule.
ALTER TABLE runner_jobs ADD COLUMN signed_order json;

-- The first change of a line of plans made again and retries: an effect is
-- consumed once per origin. NULL for changes of before: each is its own.
ALTER TABLE changes ADD COLUMN origin_id text;

-- What enrols for builds wakes those that waited for it.
GRANT SELECT (job_id) ON builds TO berth_runner;

-- Build Runners trust builder's own key, which is in no row.
REVOKE SELECT ON keys FROM berth_builder;

-- Executables of before make jobs without orders, which runners refuse.
CREATE OR REPLACE FUNCTION berth.oldest_schema() RETURNS bigint
    LANGUAGE sql IMMUTABLE
    RETURN 75::bigint;
