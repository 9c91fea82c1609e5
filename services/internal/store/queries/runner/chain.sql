-- Copies of chains that runners write; append-only.

-- name: RunnerChainHead :one
SELECT seq, hash FROM chain_heads WHERE chain = sqlc.arg(chain);

-- name: RunnerChainRecords :many
-- Stored records of a range, to compare a repeat with.
SELECT seq, hash, body FROM chain_records
WHERE chain = sqlc.arg(chain) AND seq >= sqlc.arg(first_seq) AND seq <= sqlc.arg(last_seq)
ORDER BY seq;

-- name: RunnerChainKeys :many
-- The keys that runners of this install have or had: the writers of its chain.
SELECT key_id, public_key FROM keys WHERE install_id = sqlc.arg(install_id) AND purpose = 'runner';

-- name: RunnerAddChainRecords :exec
INSERT INTO chain_records (org_id, chain, seq, prev, hash, body)
SELECT berth.current_org(), sqlc.arg(chain), unnest(sqlc.arg(seqs)::bigint[]), unnest(sqlc.arg(prevs)::bytea[]),
       unnest(sqlc.arg(hashes)::bytea[]), unnest(sqlc.arg(bodies)::bytea[]);

-- name: RunnerMoveChainHead :exec
INSERT INTO chain_heads (org_id, chain, seq, hash)
VALUES (berth.current_org(), sqlc.arg(chain), sqlc.arg(seq), sqlc.arg(hash))
ON CONFLICT (org_id, chain) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, updated_at = now()
WHERE chain_heads.seq < excluded.seq;
