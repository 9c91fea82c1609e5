-- What POSTs with an Idempotency-Key answered. status: 0 being worked on, 1
-- carried out (its answer is not stored yet), else the HTTP status.

-- name: ClaimIdempotencyKey :execrows
-- One row when the caller is the first, or when the first caller never
-- committed anything and is surely gone.
INSERT INTO idempotency_keys AS k (org_id, account_id, key, route, body_hash)
VALUES (berth.current_org(), sqlc.arg(account_id), sqlc.arg(key), sqlc.arg(route), sqlc.arg(body_hash))
ON CONFLICT (org_id, account_id, key) DO UPDATE SET created_at = now()
WHERE k.status = 0 AND k.route = excluded.route AND k.body_hash = excluded.body_hash AND k.created_at < now() - interval '2 minutes';

-- name: GetIdempotencyKey :one
SELECT * FROM idempotency_keys WHERE account_id = sqlc.arg(account_id) AND key = sqlc.arg(key);

-- name: MarkIdempotencyKeyDone :exec
-- Part of the transaction that does what was asked for.
UPDATE idempotency_keys SET status = 1 WHERE account_id = sqlc.arg(account_id) AND key = sqlc.arg(key);

-- name: StoreIdempotentAnswer :exec
UPDATE idempotency_keys SET status = sqlc.arg(status), response = sqlc.arg(response)
WHERE account_id = sqlc.arg(account_id) AND key = sqlc.arg(key);

-- name: ReleaseIdempotencyKey :exec
-- Nothing was done: the next try starts over.
DELETE FROM idempotency_keys WHERE account_id = sqlc.arg(account_id) AND key = sqlc.arg(key) AND status = 0;

-- name: ForgetIdempotencyKeys :exec
-- A key is good for a day.
DELETE FROM idempotency_keys WHERE account_id = sqlc.arg(account_id) AND created_at < now() - interval '1 day';
