-- Log streams, their chunks, and the tokens that append to them.
--
-- One stream per attempt of a job, made by runner-api when it grants the lease,
-- and one per action run that a runner starts by its own schedule. The row of a stream is its head: an append locks it, compares the
-- running hash, inserts one chunk and moves the head, all in one transaction.
-- Chunks live in partitions of a day (UTC); retention drops partitions and
-- never deletes rows, and the head goes on saying how long the stream was.

-- +goose Up

CREATE TABLE log_streams (
    id             text PRIMARY KEY,
    org_id         text NOT NULL REFERENCES orgs,
    install_id     text,
    job_id         text,
    run_id         text,
    attempt        int NOT NULL DEFAULT 1,
    -- open: lines may come. finished: the agent said the end, and it agrees.
    -- closed: the attempt was voided before its end was known.
    state          text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'finished', 'closed')),
    next_seq       bigint NOT NULL DEFAULT 1 CHECK (next_seq >= 1),
    -- The running hash after line next_seq - 1 (see package logship).
    head_hash      bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex') CHECK (length(head_hash) = 32),
    bytes          bigint NOT NULL DEFAULT 0,
    lost_lines     bigint NOT NULL DEFAULT 0,
    total_lines    bigint,
    sha256         bytea,
    late_redaction boolean NOT NULL DEFAULT false,
    created_at     timestamptz NOT NULL DEFAULT now(),
    finished_at    timestamptz,
    UNIQUE (org_id, id),
    UNIQUE (org_id, job_id, attempt),
    UNIQUE (org_id, run_id),
    FOREIGN KEY (org_id, install_id) REFERENCES installs (org_id, id),
    FOREIGN KEY (org_id, job_id) REFERENCES runner_jobs (org_id, id),
    FOREIGN KEY (org_id, run_id) REFERENCES action_runs (org_id, id),
    CONSTRAINT log_streams_owner CHECK (num_nonnulls(job_id, run_id) = 1),
    CONSTRAINT log_streams_end CHECK (
        state <> 'finished' OR (total_lines = next_seq - 1 AND sha256 = head_hash AND finished_at IS NOT NULL))
);

-- body is the zstd of the frames of the lines first_seq to last_seq; prev_hash
-- the running hash before them. A chunk is found by its last line, so that
-- "everything after line n" is one range of the index.
CREATE TABLE log_chunks (
    org_id     text NOT NULL,
    stream_id  text NOT NULL,
    first_seq  bigint NOT NULL,
    last_seq   bigint NOT NULL,
    prev_hash  bytea NOT NULL,
    raw_bytes  int NOT NULL,
    lost_lines bigint NOT NULL DEFAULT 0,
    body       bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, stream_id, last_seq, created_at),
    FOREIGN KEY (org_id, stream_id) REFERENCES log_streams (org_id, id),
    CONSTRAINT log_chunks_order CHECK (1 <= first_seq AND first_seq <= last_seq)
) PARTITION BY RANGE (created_at);
-- It is compressed already.
ALTER TABLE log_chunks ALTER COLUMN body SET STORAGE EXTERNAL;

-- Only the SHA-256 of a log token is kept. A token appends to one stream; it is
-- revoked when its attempt or its runner is voided, and outlives the session
-- that got it, because lines may wait in a spool through a long outage.
CREATE TABLE log_tokens (
    hash       bytea PRIMARY KEY CHECK (length(hash) = 32),
    org_id     text NOT NULL REFERENCES orgs,
    stream_id  text NOT NULL,
    runner_id  text NOT NULL,
    session_id text NOT NULL,
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (org_id, stream_id) REFERENCES log_streams (org_id, id),
    FOREIGN KEY (org_id, runner_id) REFERENCES runners (org_id, id),
    FOREIGN KEY (org_id, session_id) REFERENCES runner_sessions (org_id, id)
);
CREATE INDEX log_tokens_stream ON log_tokens (org_id, stream_id);
CREATE INDEX log_tokens_runner ON log_tokens (org_id, runner_id) WHERE revoked_at IS NULL;

SELECT berth.tenant_table('log_streams');
SELECT berth.tenant_table('log_chunks');
SELECT berth.tenant_table('log_tokens');

-- Nobody gets a grant on a partition: read there, the wall would be missing.
GRANT SELECT, INSERT ON log_streams TO berth_runner;
GRANT SELECT, INSERT ON log_tokens TO berth_runner;
GRANT SELECT ON log_streams TO berth_ctl;
GRANT SELECT (org_id, stream_id, runner_id, session_id, expires_at, revoked_at) ON log_tokens TO berth_ctl;
GRANT UPDATE (state, finished_at) ON log_streams TO berth_runner, berth_ctl;
GRANT UPDATE (revoked_at) ON log_tokens TO berth_runner, berth_ctl;
GRANT SELECT ON log_streams, log_tokens TO berth_log;
GRANT UPDATE (state, next_seq, head_hash, bytes, lost_lines, total_lines, sha256, late_redaction, finished_at)
    ON log_streams TO berth_log;
GRANT SELECT, INSERT ON log_chunks TO berth_log;
GRANT SELECT ON log_tokens TO berth_sys;
-- Grants may be limited to a customer, an app or an install.
GRANT SELECT (org_id, id, customer_id, app_id) ON installs TO berth_log;

-- org_of_log_token names the org that a log token belongs to, and nothing else;
-- NULL when there is no such token. Whether it is still good is read in the
-- transaction that appends.
-- +goose StatementBegin
CREATE FUNCTION berth.org_of_log_token(token_hash bytea) RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = berth, pg_temp
AS $$
    SELECT org_id FROM log_tokens WHERE hash = token_hash
$$;
-- +goose StatementEnd
SELECT berth.system_function('berth.org_of_log_token(bytea)', 'berth_log');

-- add_log_partition makes the partition of one day, if it is missing. The table
-- is made first and attached then, which does not block readers and writers.
-- +goose StatementBegin
CREATE FUNCTION berth.add_log_partition(day date) RETURNS boolean
    LANGUAGE plpgsql SET search_path = berth, pg_temp SET timezone = 'UTC'
AS $$
DECLARE
    partition text := 'log_chunks_' || to_char(day, 'YYYYMMDD');
BEGIN
    IF to_regclass('berth.' || partition) IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE berth.%I (LIKE berth.log_chunks INCLUDING ALL)', partition);
    EXECUTE format('ALTER TABLE berth.log_chunks ATTACH PARTITION berth.%I FOR VALUES FROM (%L) TO (%L)',
                   partition, day::timestamptz, (day + 1)::timestamptz);
    RETURN true;
END
$$;

-- keep_log_partitions makes the partitions of today and of the next ahead_days
-- days, and drops those whose day ended more than keep_days days ago. It
-- returns the names of the dropped ones, or NULL when another replica is at it.
-- It gives up, to be called again, rather than queue behind a long reader and
-- hold up everybody else.
CREATE FUNCTION berth.keep_log_partitions(keep_days int, ahead_days int) RETURNS text[]
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
          AND to_date(right(c.relname, 8), 'YYYYMMDD') < today - keep_days
        ORDER BY c.relname
    LOOP
        EXECUTE format('DROP TABLE berth.%I', old.name);
        dropped := dropped || old.name::text;
    END LOOP;
    RETURN dropped;
END
$$;
-- +goose StatementEnd
GRANT EXECUTE ON FUNCTION berth.keep_log_partitions(int, int) TO berth_log;

SELECT berth.keep_log_partitions(30, 7);
