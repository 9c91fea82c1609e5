-- Webhooks and their deliveries.

-- name: WebhooksBehind :one
-- Orgs that have events which some webhook of theirs was not looked at for.
SELECT berth.webhooks_behind()::text[];

-- name: WebhooksDue :one
-- 'org webhook' of those with a delivery that is overdue by so many seconds.
SELECT berth.webhooks_due(sqlc.arg(late_seconds)::float8)::text[];

-- name: LockMakingWebhooks :exec
-- One transaction of an org at a time makes webhooks: the next one counts what this
-- one has made.
SELECT pg_advisory_xact_lock(hashtextextended('berth.webhooks.' || berth.current_org(), 0));

-- name: CountWebhooks :one
SELECT count(*) FROM webhooks WHERE state <> 'deleted';

-- name: InsertWebhook :one
-- It gets what happens from now on.
INSERT INTO webhooks (id, org_id, name, url, filters, secrets, position, created_by)
VALUES (sqlc.arg(id), berth.current_org(), sqlc.arg(name), sqlc.arg(url), sqlc.arg(filters), sqlc.arg(secrets),
        coalesce((SELECT seq FROM event_heads WHERE org_id = berth.current_org()), 0), sqlc.arg(created_by))
RETURNING *;

-- name: ListWebhooks :many
SELECT * FROM webhooks WHERE state <> 'deleted' AND id > sqlc.arg(after) ORDER BY id LIMIT sqlc.arg(most);

-- name: FindWebhook :one
-- By id or name.
SELECT * FROM webhooks WHERE (id = sqlc.arg(ref) OR name = sqlc.arg(ref)) AND state <> 'deleted';

-- name: LockWebhook :one
SELECT * FROM webhooks WHERE (id = sqlc.arg(ref) OR name = sqlc.arg(ref)) AND state <> 'deleted' FOR UPDATE;

-- name: UpdateWebhook :one
UPDATE webhooks SET name = sqlc.arg(name), url = sqlc.arg(url), filters = sqlc.arg(filters), secrets = sqlc.arg(secrets), state = sqlc.arg(state),
    position = sqlc.arg(position), failing_since = sqlc.narg(failing_since), updated_at = now()
WHERE id = sqlc.arg(id) RETURNING *;

-- name: ClaimWebhook :one
-- One worker sends for a webhook at a time; the claim of a killed one runs out.
UPDATE webhooks SET busy_until = now() + make_interval(secs => sqlc.arg(seconds)::float8)
WHERE id = sqlc.arg(id) AND state = 'enabled' AND (busy_until IS NULL OR busy_until < now()) RETURNING *;

-- name: GetWebhook :one
SELECT * FROM webhooks WHERE id = sqlc.arg(id);

-- name: ReleaseWebhook :exec
UPDATE webhooks SET busy_until = NULL WHERE id = sqlc.arg(id);

-- name: WebhookSucceeded :exec
UPDATE webhooks SET succeeded_at = now(), failing_since = NULL WHERE id = sqlc.arg(id);

-- name: WebhookFailing :one
-- Since when it fails, which is from now on when it did not.
UPDATE webhooks SET failing_since = coalesce(failing_since, now()) WHERE id = sqlc.arg(id) RETURNING failing_since::timestamptz;

-- name: WebhookFailed :execrows
UPDATE webhooks SET state = 'failed', updated_at = now() WHERE id = sqlc.arg(id) AND state = 'enabled';

-- name: WebhooksToFeed :many
-- Enabled webhooks that are behind the head, locked. It waits for those that are locked:
-- a courier that claims or releases one would not distribute what was skipped.
SELECT * FROM webhooks WHERE state = 'enabled' AND position < sqlc.arg(head) ORDER BY id FOR UPDATE;

-- name: MoveWebhook :exec
UPDATE webhooks SET position = sqlc.arg(position) WHERE id = sqlc.arg(id);

-- name: InsertDeliveries :exec
INSERT INTO webhook_deliveries (id, org_id, webhook_id, event_id, event_kind, event_seq, cause, next_at)
SELECT d.id, berth.current_org(), sqlc.arg(webhook_id)::text, d.event_id, d.kind, nullif(d.seq, 0), sqlc.arg(cause)::text, now()
FROM (SELECT unnest(sqlc.arg(ids)::text[]) AS id, unnest(sqlc.arg(event_ids)::text[]) AS event_id, unnest(sqlc.arg(kinds)::text[]) AS kind,
             unnest(sqlc.arg(seqs)::bigint[]) AS seq) d;

-- name: DueDeliveries :many
-- What is to be attempted now, with the event; oldest first.
SELECT d.id, d.created_at, d.event_id, d.event_kind, d.event_seq, d.cause, d.attempts, e.at, e.install_id, e.app_id, e.customer_id, e.body
FROM webhook_deliveries d LEFT JOIN events e ON e.org_id = d.org_id AND e.seq = d.event_seq
WHERE d.webhook_id = sqlc.arg(webhook_id) AND d.state = 'pending' AND d.next_at <= now()
ORDER BY d.next_at, d.id LIMIT sqlc.arg(most);

-- name: NextDelivery :one
-- When the next attempt of the webhook is due; NULL when none is pending.
SELECT min(next_at)::timestamptz AS due FROM webhook_deliveries WHERE webhook_id = sqlc.arg(webhook_id) AND state = 'pending' HAVING count(*) > 0;

-- name: RecordAttempt :exec
-- What an attempt came to; finished when state is not pending.
UPDATE webhook_deliveries SET state = sqlc.arg(state), attempts = attempts + 1, attempted_at = now(), status = sqlc.narg(status), error = sqlc.narg(error),
    response = sqlc.narg(response), took_ms = sqlc.arg(took_ms)::int, next_at = sqlc.narg(next_at),
    finished_at = CASE WHEN sqlc.arg(state) = 'pending' THEN NULL ELSE now() END
WHERE id = sqlc.arg(id) AND created_at = sqlc.arg(created_at) AND state = 'pending';

-- name: BuryDeliveries :execrows
-- Pending deliveries of a webhook that gets nothing any more become dead letters.
UPDATE webhook_deliveries SET state = 'dead', next_at = NULL, finished_at = now(), error = sqlc.arg(error)::text
WHERE webhook_id = sqlc.arg(webhook_id) AND state = 'pending';

-- name: ListDeliveries :many
-- Newest first; of one state, or all.
SELECT * FROM webhook_deliveries
WHERE webhook_id = sqlc.arg(webhook_id) AND (sqlc.narg(state)::text IS NULL OR state = sqlc.narg(state))
  AND (sqlc.narg(before)::text IS NULL OR id < sqlc.narg(before))
ORDER BY id DESC LIMIT sqlc.arg(most);

-- name: DeliveriesToReplay :many
-- Of one delivery by id, or those of a state, the events that are still kept:
-- each once, oldest first.
SELECT DISTINCT ON (e.seq) e.seq, e.id, d.event_kind AS kind
FROM webhook_deliveries d JOIN events e ON e.org_id = d.org_id AND e.seq = d.event_seq
WHERE d.webhook_id = sqlc.arg(webhook_id) AND (sqlc.narg(id)::text IS NULL OR d.id = sqlc.narg(id)) AND (sqlc.narg(state)::text IS NULL OR d.state = sqlc.narg(state))
  -- A dead letter that a later delivery made good is not sent once more.
  AND (sqlc.narg(state)::text IS NULL OR NOT EXISTS (SELECT FROM webhook_deliveries x
       WHERE x.webhook_id = d.webhook_id AND x.event_seq = d.event_seq AND x.state IN ('pending', 'delivered')))
ORDER BY e.seq LIMIT sqlc.arg(most);

-- name: DeliveryCounts :one
SELECT count(*) FILTER (WHERE state = 'pending') AS pending, count(*) FILTER (WHERE state = 'dead') AS dead
FROM webhook_deliveries WHERE webhook_id = sqlc.arg(webhook_id) AND state IN ('pending', 'dead');

-- name: LabelsOfInstalls :many
SELECT id, labels FROM installs WHERE id = ANY (sqlc.arg(ids)::text[]);
