package access

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/db"
)

// hashPrefix stands before the hex digits of a chain's hash; rows hold the raw
// 32 bytes.
const hashPrefix = "sha256:"

// Audit records in the org's chain, as part of the transaction, what somebody
// did. It locks the head of the chain until the transaction ends, so it is the
// last thing that a transaction does. Neither text may hold a secret: chains
// are shown to others.
func (k *Keyring) Audit(ctx context.Context, tx *store.Tx, actor, what string) error {
	key, err := k.Dispatch(ctx, tx)
	if err != nil {
		return err
	}
	org := tx.OrgID()
	if err := tx.OpenAuditChain(ctx, org); err != nil {
		return fmt.Errorf("open chain: %w", err)
	}
	row, err := tx.LockAuditHead(ctx, org)
	if err != nil {
		return fmt.Errorf("lock chain: %w", err)
	}
	head := chain.Head{Seq: row.Seq}
	if len(row.Hash) > 0 {
		head.Hash = hashPrefix + hex.EncodeToString(row.Hash)
	}
	line, err := chain.Next(head, chain.Record{Actor: actor, Kind: chain.Event, What: what}, chain.Signer{Chain: org, Key: key})
	if err != nil {
		return fmt.Errorf("record in chain: %w", err)
	}
	hash, err := hex.DecodeString(strings.TrimPrefix(line.Hash, hashPrefix))
	if err != nil {
		return fmt.Errorf("record in chain: %w", err)
	}
	if err := tx.AppendAuditRecord(ctx, db.AppendAuditRecordParams{Chain: org, Seq: line.Seq, Prev: append([]byte{}, row.Hash...), Hash: hash, Body: line.Raw}); err != nil {
		return fmt.Errorf("record in chain: %w", err)
	}
	return tx.MoveAuditHead(ctx, db.MoveAuditHeadParams{Chain: org, Seq: line.Seq, Hash: hash})
}
