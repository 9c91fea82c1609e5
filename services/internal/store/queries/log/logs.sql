-- Log streams. runner-api opens them and mints tokens at claim, closes them
-- when an attempt is voided; log-ingest appends, finishes and reads. All run
-- inside store.Tx of the org, but the two that say so.

-- name: OrgOfLogToken :one
-- The org that a log token belongs to, before any org is set; empty when there
-- is no such token.
SELECT coalesce(berth.org_of_log_token(sqlc.arg(hash)::bytea), '')::text;

-- name: StreamOfLogToken :one
-- The stream that a log token appends to, whether it is still good or not.
SELECT stream_id FROM log_tokens WHERE hash = sqlc.arg(hash);

-- name: LocateLogStream :one
-- Where a stream stands: what grants can be limited to. Empty for builds.
SELECT coalesce(i.id, '')::text AS install_id, coalesce(i.customer_id, '')::text AS customer_id, coalesce(i.app_id, '')::text AS app_id
FROM log_streams s LEFT JOIN installs i ON i.org_id = s.org_id AND i.id = s.install_id
WHERE s.id = sqlc.arg(stream_id);

-- name: LockLogStream :one
-- The head of a stream for an append, and whether this token may write to it.
-- The row stays locked until the transaction ends, so appends and the voiding
-- of the attempt come one after the other.
SELECT s.state, s.next_seq, s.head_hash, s.total_lines, s.created_at,
       (t.expires_at <= now())::boolean AS token_expired,
       (t.revoked_at IS NOT NULL)::boolean AS token_revoked
FROM log_streams s JOIN log_tokens t ON t.org_id = s.org_id AND t.stream_id = s.id
WHERE s.id = sqlc.arg(stream_id) AND t.hash = sqlc.arg(token_hash)
FOR UPDATE OF s;

-- name: InsertLogChunk :exec
INSERT INTO log_chunks (org_id, stream_id, first_seq, last_seq, prev_hash, raw_bytes, lost_lines, body)
VALUES (berth.current_org(), sqlc.arg(stream_id), sqlc.arg(first_seq), sqlc.arg(last_seq), sqlc.arg(prev_hash),
        sqlc.arg(raw_bytes), sqlc.arg(lost_lines), sqlc.arg(body));

-- name: MoveLogHead :exec
-- The head after the chunk that was just inserted.
UPDATE log_streams
SET next_seq = sqlc.arg(next_seq), head_hash = sqlc.arg(head_hash),
    bytes = bytes + sqlc.arg(added_bytes)::bigint, lost_lines = lost_lines + sqlc.arg(added_lost)::bigint
WHERE id = sqlc.arg(stream_id);

-- name: FinishLogStream :exec
-- The end as the agent said it; the caller has compared it with the head.
UPDATE log_streams
SET state = 'finished', total_lines = next_seq - 1, sha256 = head_hash, finished_at = now(),
    late_redaction = sqlc.arg(late_redaction)
WHERE id = sqlc.arg(stream_id) AND state = 'open';

-- name: GetLogStream :one
SELECT * FROM log_streams WHERE id = sqlc.arg(stream_id);

-- name: ListLogChunks :many
-- The chunks that hold lines after this one, oldest first. since is the time
-- the stream was made; it leaves out older partitions.
SELECT first_seq, last_seq, prev_hash, body
FROM log_chunks
WHERE stream_id = sqlc.arg(stream_id) AND last_seq > sqlc.arg(after_seq) AND created_at >= sqlc.arg(since)
ORDER BY last_seq
LIMIT sqlc.arg(most);

-- name: FirstLogSeq :one
-- The first line that retention has left; 0 when there is none.
SELECT coalesce((SELECT first_seq FROM log_chunks
                 WHERE stream_id = sqlc.arg(stream_id) AND created_at >= sqlc.arg(since)
                 ORDER BY last_seq LIMIT 1), 0)::bigint;

-- name: ListLossyLogChunks :many
-- The chunks in which an agent says that it dropped lines.
SELECT first_seq, last_seq, prev_hash, body
FROM log_chunks
WHERE stream_id = sqlc.arg(stream_id) AND created_at >= sqlc.arg(since) AND lost_lines > 0
ORDER BY last_seq
LIMIT sqlc.arg(most);

-- name: KeepLogPartitions :one
-- Makes partitions ahead and drops expired ones, outside any org. NULL: another
-- replica is at it.
SELECT berth.keep_log_partitions(sqlc.arg(keep_days)::int, sqlc.arg(ahead_days)::int)::text[] AS dropped;
