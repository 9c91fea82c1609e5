-- How far the points of series were sent to the vendor's own monitoring.

-- +goose Up

-- The transaction that wrote a point; NULL for points of before, which are not sent. Without a
-- default at first: then no row is written again.
ALTER TABLE metric_points ADD COLUMN tx bigint;
ALTER TABLE metric_points ALTER COLUMN tx SET DEFAULT pg_current_xact_id()::text::bigint;
CREATE INDEX metric_points_export ON metric_points (tx, at, series) WHERE tx IS NOT NULL;

-- One row, for all orgs, once somebody exports. (tx, at, series) is the last point that was
-- sent. Whoever writes claimant and not_before sends alone until then; not_before is also
-- when to try again after a failure. lost counts points that retention dropped unsent, until
-- they were reported.
CREATE TABLE metric_export (
    only_one   boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    tx         bigint NOT NULL,
    at         timestamptz NOT NULL DEFAULT 'epoch',
    series     bigint NOT NULL DEFAULT 0,
    claimant   text NOT NULL DEFAULT '',
    not_before timestamptz NOT NULL DEFAULT 'epoch',
    lost       bigint NOT NULL DEFAULT 0
);
GRANT SELECT, INSERT, UPDATE ON metric_export TO berth_sys;
GRANT SELECT ON metric_series, metric_points TO berth_sys;

-- claim_metric_export gives the claimant the position, or nothing while another one is at
-- it or a pause lasts. The first call begins with what is written from now on. A position
-- that this server has not reached is that of another one, from which the database was
-- restored: numbers of transactions began again there.
-- +goose StatementBegin
CREATE FUNCTION berth.claim_metric_export(claimant text, seconds float8)
    RETURNS TABLE (tx bigint, at timestamptz, series bigint, lost bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp SET lock_timeout = '5s' AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO metric_export (tx) VALUES (pg_snapshot_xmin(pg_current_snapshot())::text::bigint) ON CONFLICT DO NOTHING;
    RETURN QUERY
    UPDATE metric_export e
    SET claimant = claim_metric_export.claimant, not_before = now() + make_interval(secs => seconds),
        tx = CASE WHEN e.tx > pg_snapshot_xmax(pg_current_snapshot())::text::bigint THEN 0 ELSE e.tx END
    WHERE e.not_before <= now()
    RETURNING e.tx, e.at, e.series, e.lost;
END $$;

-- points_to_export are the next ones behind a position. It stops before the oldest
-- transaction that is still open: what that one writes has a place before what is there.
CREATE FUNCTION berth.points_to_export(after_tx bigint, after_at timestamptz, after_series bigint, most int)
    RETURNS TABLE (tx bigint, at timestamptz, series bigint, value float8, stored_at timestamptz, org_id text, install_id text, install text, app text,
                   customer text, action text, name text, labels jsonb, kind text, help text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = berth, pg_temp AS $$
    SELECT p.tx, p.at, p.series, p.value, p.stored_at, s.org_id, i.id, i.name, a.name, c.name, s.action, s.name, s.labels, s.kind, s.help
    FROM (
        SELECT x.* FROM metric_points x
        WHERE x.tx IS NOT NULL AND x.tx >= after_tx AND (x.tx, x.at, x.series) > (after_tx, after_at, after_series)
          AND x.tx < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
        ORDER BY x.tx, x.at, x.series LIMIT most
    ) p
    JOIN metric_series s ON s.org_id = p.org_id AND s.number = p.series
    JOIN installs i ON i.org_id = s.org_id AND i.id = s.install_id
    JOIN apps a ON a.org_id = i.org_id AND a.id = i.app_id
    JOIN customers c ON c.org_id = i.org_id AND c.id = i.customer_id
    ORDER BY p.tx, p.at, p.series
$$;

-- metric_export_lag is how many seconds ago the oldest point was stored that was not sent.
CREATE FUNCTION berth.metric_export_lag() RETURNS float8
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = berth, pg_temp AS $$
    SELECT coalesce((
        SELECT extract(epoch FROM now() - p.stored_at)
        FROM metric_export e CROSS JOIN LATERAL (
            SELECT x.stored_at FROM metric_points x
            WHERE x.tx IS NOT NULL AND x.tx >= e.tx AND (x.tx, x.at, x.series) > (e.tx, e.at, e.series)
            ORDER BY x.tx, x.at, x.series LIMIT 1
        ) p), 0)::float8
$$;

-- keep_metric_export moves the position and ends the claim, or says false when somebody
-- else has claimed meanwhile. told are lost points that were reported.
CREATE FUNCTION berth.keep_metric_export(claimant text, tx bigint, at timestamptz, series bigint, told bigint, pause float8) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp SET lock_timeout = '5s' AS $$
BEGIN
    UPDATE metric_export e
    SET tx = keep_metric_export.tx, at = keep_metric_export.at, series = keep_metric_export.series, lost = e.lost - told,
        not_before = now() + make_interval(secs => pause), claimant = ''
    WHERE e.claimant = keep_metric_export.claimant;
    RETURN FOUND;
END $$;
-- +goose StatementEnd
SELECT berth.system_function('berth.claim_metric_export(text, float8)', 'berth_ctl');
SELECT berth.system_function('berth.points_to_export(bigint, timestamptz, bigint, int)', 'berth_ctl');
SELECT berth.system_function('berth.metric_export_lag()', 'berth_ctl');
SELECT berth.system_function('berth.keep_metric_export(text, bigint, timestamptz, bigint, bigint, float8)', 'berth_ctl');

-- keep_event_partitions, as before; and it counts the points that go unsent.
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
                IF parent = 'metric_points' THEN
                    EXECUTE format('UPDATE metric_export e SET lost = e.lost + (
                        SELECT count(*) FROM berth.%I p WHERE p.tx >= e.tx AND (p.tx, p.at, p.series) > (e.tx, e.at, e.series))', old.name);
                END IF;
                EXECUTE format('DROP TABLE berth.%I', old.name);
                dropped := dropped || old.name::text;
            END IF;
        END LOOP;
    END LOOP;
    DELETE FROM metric_series WHERE stored_at < today - keep_days;
    RETURN dropped;
END $$;
-- +goose StatementEnd
