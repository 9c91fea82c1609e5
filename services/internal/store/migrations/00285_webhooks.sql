-- Webhooks: where an org wants its events sent, and what became of each.

-- +goose Up

-- One address that gets the events of an org. filters is
-- {"kinds": [], "apps": [], "installs": [], "labels": {}}, ids of apps and
-- installs; an empty one lets all pass. secrets is the JSON array of one or two
-- signing secrets, newest first, sealed to the org at rest. position is the
-- number of the last event that was looked at for it. busy_until is the claim of
-- the worker that sends now; a killed one's runs out. failing_since is the first
-- failure after the last success.
CREATE TABLE webhooks (
    id              text PRIMARY KEY,
    org_id          text NOT NULL REFERENCES orgs,
    name            text NOT NULL,
    url             text NOT NULL,
    filters         jsonb NOT NULL DEFAULT '{}',
    secrets         bytea NOT NULL,
    state           text NOT NULL DEFAULT 'enabled' CHECK (state IN ('enabled', 'disabled', 'failed', 'deleted')),
    position        bigint NOT NULL,
    busy_until      timestamptz,
    failing_since   timestamptz,
    succeeded_at    timestamptz,
    created_by      text NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now(),
    UNIQUE (org_id, id)
);
CREATE UNIQUE INDEX webhooks_name ON webhooks (org_id, name) WHERE state <> 'deleted';

-- One event that is to reach one webhook: pending until the receiver has taken it
-- (delivered) or the last attempt has failed (dead). ctl-api makes and moves it.
-- event_seq is NULL for a test. Partitions of a day (UTC), dropped as those of
-- events are.
CREATE TABLE webhook_deliveries (
    id          text NOT NULL,
    org_id      text NOT NULL,
    webhook_id  text NOT NULL,
    event_id    text NOT NULL,
    event_kind  text NOT NULL,
    event_seq   bigint,
    cause       text NOT NULL DEFAULT 'event' CHECK (cause IN ('event', 'replay', 'test')),
    state       text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'dead')),
    attempts    int NOT NULL DEFAULT 0,
    next_at     timestamptz,
    status      int,
    error       text,
    response    text CHECK (length(response) <= 1024),
    took_ms     int,
    created_at  timestamptz NOT NULL DEFAULT now(),
    attempted_at timestamptz,
    finished_at timestamptz,
    PRIMARY KEY (org_id, id, created_at),
    FOREIGN KEY (org_id, webhook_id) REFERENCES webhooks (org_id, id),
    CONSTRAINT webhook_deliveries_wait CHECK ((state = 'pending') = (next_at IS NOT NULL)),
    CONSTRAINT webhook_deliveries_end CHECK ((state = 'pending') = (finished_at IS NULL))
) PARTITION BY RANGE (created_at);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (org_id, webhook_id, next_at) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_list ON webhook_deliveries (org_id, webhook_id, id DESC);

SELECT berth.tenant_table('webhooks');
SELECT berth.tenant_table('webhook_deliveries');
GRANT SELECT, INSERT, UPDATE ON webhooks, webhook_deliveries TO berth_ctl;
GRANT SELECT ON webhooks, webhook_deliveries TO berth_sys;

SELECT berth.keep_event_partitions(30, 7);

-- webhooks_behind names the orgs that have events which some webhook of theirs was
-- not looked at for.
-- +goose StatementBegin
CREATE FUNCTION berth.webhooks_behind() RETURNS text[]
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = berth, pg_temp AS $$
    SELECT coalesce(array_agg(DISTINCT w.org_id), '{}') FROM webhooks w JOIN event_heads h ON h.org_id = w.org_id
    WHERE w.state = 'enabled' AND w.position < h.seq
$$;

-- webhooks_due names, as 'org webhook', the webhooks with a delivery that should
-- have been attempted by now: what a lost wake-up left lying.
CREATE FUNCTION berth.webhooks_due(late_seconds float8) RETURNS text[]
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = berth, pg_temp AS $$
    SELECT coalesce(array_agg(w.org_id || ' ' || w.id), '{}') FROM webhooks w
    WHERE w.state = 'enabled' AND (w.busy_until IS NULL OR w.busy_until < now())
      AND EXISTS (SELECT FROM webhook_deliveries d
                  WHERE d.org_id = w.org_id AND d.webhook_id = w.id AND d.state = 'pending' AND d.next_at < now() - make_interval(secs => late_seconds))
$$;
-- +goose StatementEnd
SELECT berth.system_function('berth.webhooks_behind()', 'berth_ctl');
SELECT berth.system_function('berth.webhooks_due(float8)', 'berth_ctl');

-- An alarm may be about a webhook, which is no runner's.
ALTER TABLE alarms ALTER COLUMN runner_id DROP NOT NULL;
DROP INDEX alarms_open;
CREATE UNIQUE INDEX alarms_open ON alarms (org_id, (coalesce(runner_id, '')), kind, subject) WHERE acknowledged_at IS NULL;

-- As before, but for the order of its conditions: with partitions of other tables
-- Postgres may read their names as dates before it looks whose they are.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION berth.keep_log_partitions(keep_days int, ahead_days int) RETURNS text[]
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = berth, pg_temp SET timezone = 'UTC' SET lock_timeout = '3s'
AS $$
DECLARE
    today   date := current_date;
    old     record;
    dropped text[] := '{}';
BEGIN
    IF keep_days < 1 OR ahead_days < 1 THEN
        RAISE EXCEPTION 'keep_days and ahead_days must be at least 1';
    END IF;
    IF NOT pg_try_advisory_xact_lock(hashtextextended('berth.log_partitions', 0)) THEN
        RETURN NULL;
    END IF;
    FOR i IN 0 .. ahead_days LOOP
        PERFORM berth.add_log_partition(today + i);
    END LOOP;
    FOR old IN
        SELECT c.relname AS name
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'berth.log_chunks'::regclass
        ORDER BY c.relname
    LOOP
        IF to_date(right(old.name, 8), 'YYYYMMDD') < today - keep_days THEN
            EXECUTE format('DROP TABLE berth.%I', old.name);
            dropped := dropped || old.name::text;
        END IF;
    END LOOP;
    RETURN dropped;
END
$$;
-- +goose StatementEnd
