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

-- name: HeadToAnchor :one
-- How far an install's chain has come, and how far it had come when that was
-- recorded in the org's chain last. The latter is kept as the head of a chain of
-- its own name, "<install>/anchored", which has no records.
SELECT h.seq, h.hash, coalesce(a.seq, 0)::bigint AS anchored_seq, a.updated_at AS anchored_at,
       EXISTS (SELECT FROM workflows w WHERE w.install_id = h.chain AND w.finished_at > a.updated_at)::boolean AS workflow_ended
FROM chain_heads h
LEFT JOIN chain_heads a ON a.org_id = h.org_id AND a.chain = h.chain || '/anchored'
WHERE h.chain = sqlc.arg(install_id);

-- name: MoveAnchoredHead :exec
INSERT INTO chain_heads (org_id, chain, seq, hash, updated_at)
VALUES (berth.current_org(), sqlc.arg(install_id)::text || '/anchored', sqlc.arg(seq), sqlc.arg(hash), sqlc.arg(anchored_at))
ON CONFLICT (org_id, chain) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, updated_at = excluded.updated_at;
