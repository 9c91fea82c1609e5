-- Numbers that runs of actions wrote, as series.

-- +goose Up

-- A series is a metric of an action in an install with one set of labels (labels_key is
-- their digest). runner-api writes it with its newest value, in the transaction that
-- takes the result of the run. number is what points refer to: there are many of them.
CREATE TABLE metric_series (
    id         text PRIMARY KEY,
    org_id     text NOT NULL REFERENCES orgs,
    number     bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    install_id text NOT NULL,
    action     text NOT NULL,
    name       text NOT NULL CHECK (octet_length(name) <= 128),
    labels     jsonb NOT NULL DEFAULT '{}',
    labels_key text NOT NULL,
    kind       text NOT NULL CHECK (kind IN ('counter', 'gauge', 'untyped')),
    help       text NOT NULL DEFAULT '' CHECK (octet_length(help) <= 256),
    last_value float8 NOT NULL,
    last_at    timestamptz NOT NULL,
    last_run   text NOT NULL,
    stored_at  timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (org_id, id),
    UNIQUE (org_id, number),
    UNIQUE (org_id, install_id, name, action, labels_key),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id)
);
CREATE INDEX metric_series_stored ON metric_series (stored_at);

-- A number that a run wrote. at is when the run ended, by the runner's clock; a partition
-- has what came on one day, since a runner that was cut off brings earlier days.
CREATE TABLE metric_points (
    org_id    text NOT NULL REFERENCES orgs,
    series    bigint NOT NULL,
    at        timestamptz NOT NULL,
    value     float8 NOT NULL,
    run_id    text NOT NULL,
    stored_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (series, at, stored_at),
    FOREIGN KEY (org_id, series) REFERENCES metric_series (org_id, number)
) PARTITION BY RANGE (stored_at);

SELECT berth.tenant_table('metric_series');
SELECT berth.tenant_table('metric_points');
GRANT SELECT (id, org_id, number, install_id, action, name, labels_key, kind, help, last_value, last_at, last_run),
    INSERT (id, org_id, install_id, action, name, labels, labels_key, kind, help, last_value, last_at, last_run),
    UPDATE (kind, help, last_value, last_at, last_run, stored_at) ON metric_series TO berth_runner;
GRANT INSERT (org_id, series, at, value, run_id) ON metric_points TO berth_runner;
GRANT SELECT ON metric_series, metric_points TO berth_ctl;

-- Of a run: when its points are, none when it wrote no numbers; how many it wrote, and
-- what was left out.
ALTER TABLE action_runs ADD COLUMN metrics_at timestamptz,
    ADD COLUMN metrics_kept int NOT NULL DEFAULT 0,
    ADD COLUMN metrics_error text CHECK (octet_length(metrics_error) <= 1000);
GRANT SELECT (action), UPDATE (metrics_at, metrics_kept, metrics_error) ON action_runs TO berth_runner;

-- keep_event_partitions, as before; of points too, and it drops series of which no
-- point is left, so that new ones find room.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION berth.keep_event_partitions(keep_days int, ahead_days int) RETURNS text[]
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp SET timezone = 'UTC' SET lock_timeout = '3s' AS $$
DECLARE
    today   date := current_date;
    parent  text;
    old     record;
    dropped text[] := '{}';
BEGIN
    IF keep_days < 7 OR ahead_days < 1 THEN
        RAISE EXCEPTION 'keep_days must be at least 7 and ahead_days at least 1';
    END IF;
    IF NOT pg_try_advisory_xact_lock(hashtextextended('berth.event_partitions', 0)) THEN
        RETURN NULL;
    END IF;
    FOREACH parent IN ARRAY ARRAY['events', 'webhook_deliveries', 'metric_points'] LOOP
        FOR i IN 0 .. ahead_days LOOP
            PERFORM berth.add_day_partition(parent, today + i);
        END LOOP;
        FOR old IN
            SELECT c.relname AS name
            FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = ('berth.' || parent)::regclass
            ORDER BY c.relname
        LOOP
            -- Not in the query: it could read the names of other relations first.
            IF to_date(right(old.name, 8), 'YYYYMMDD') < today - keep_days THEN
                EXECUTE format('DROP TABLE berth.%I', old.name);
                dropped := dropped || old.name::text;
            END IF;
        END LOOP;
    END LOOP;
    DELETE FROM metric_series WHERE stored_at < today - keep_days;
    RETURN dropped;
END $$;
-- +goose StatementEnd
SELECT berth.add_day_partition('metric_points', (now() AT TIME ZONE 'UTC')::date + i) FROM generate_series(0, 7) AS i;
