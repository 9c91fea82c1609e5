-- The org's own chain, written by ctl-api, and chains as they are shown.

-- name: OpenAuditChain :exec
-- Makes the head of a chain that has no record yet.
INSERT INTO chain_heads (org_id, chain, seq, hash) VALUES (berth.current_org(), sqlc.arg(chain), 0, '')
ON CONFLICT DO NOTHING;

-- name: LockAuditHead :one
-- The last record of a chain; nobody else appends until this transaction ends.
SELECT seq, hash FROM chain_heads WHERE chain = sqlc.arg(chain) FOR UPDATE;

-- name: AppendAuditRecord :exec
INSERT INTO chain_records (org_id, chain, seq, prev, hash, body)
VALUES (berth.current_org(), sqlc.arg(chain), sqlc.arg(seq), sqlc.arg(prev), sqlc.arg(hash), sqlc.arg(body));

-- name: MoveAuditHead :exec
UPDATE chain_heads SET seq = sqlc.arg(seq), hash = sqlc.arg(hash), updated_at = now() WHERE chain = sqlc.arg(chain);

-- name: ListChainRecords :many
SELECT seq, hash, body, recorded_at FROM chain_records
WHERE chain = sqlc.arg(chain) AND seq > sqlc.arg(after_seq) ORDER BY seq LIMIT sqlc.arg(most);

-- name: GetChainHead :one
SELECT seq, hash FROM chain_heads WHERE chain = sqlc.arg(chain);
