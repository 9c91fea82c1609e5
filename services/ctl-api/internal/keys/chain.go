package keys

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// hashPrefix stands before the hex digits of a chain's hash; rows hold the raw
// 32 bytes.
const hashPrefix = "sha256:"

// Audit records in the org's chain, as part of the transaction, what somebody
// did. It locks the head of the chain until the transaction ends, so it is the
// last thing that a transaction does. Neither text may hold a secret: chains
// are shown to others.
func (k *Ring) Audit(ctx context.Context, tx *database.Tx, actor, what string) error {
	return k.record(ctx, tx, chain.Record{Actor: actor, Kind: chain.Event, What: what})
}

// Anchored is how far another chain has come.
type Anchored struct {
	Actor string // who asked for the record
	What  string // for people: whose chain it is
	Chain string // the id of the other chain
	Head  chain.Head
}

// Anchor records in the org's chain how far another chain has come, as the
// control plane sees it. It signs that itself: the other writer's signature is on
// the record that the head names. It locks like Audit.
func (k *Ring) Anchor(ctx context.Context, tx *database.Tx, a Anchored) error {
	key, err := k.Dispatch(ctx, tx)
	if err != nil {
		return err
	}
	signed := chain.SignHead(a.Head, chain.Signer{Chain: a.Chain, Key: key})
	return k.record(ctx, tx, chain.Record{Actor: a.Actor, Kind: chain.Anchor, What: a.What, Anchored: &signed})
}

// Head is how far the org's own chain has come, signed by its writer for others
// to record; nil when it has no record yet. It must not be asked in a transaction
// that records itself: what is signed is stored for ever.
func (k *Ring) Head(ctx context.Context, tx *database.Tx) (*chain.SignedHead, error) {
	row, err := tx.GetChainHead(ctx, tx.OrgID())
	if errors.Is(err, fault.ErrNotFound) || err == nil && row.Seq == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read chain head: %w", err)
	}
	key, err := k.Dispatch(ctx, tx)
	if err != nil {
		return nil, err
	}
	signed := chain.SignHead(HeadOf(row.Seq, row.Hash), chain.Signer{Chain: tx.OrgID(), Key: key})
	return &signed, nil
}

// HeadOf is a head as chains write it, of one as rows hold it.
func HeadOf(seq int64, hash []byte) chain.Head {
	head := chain.Head{Seq: seq}
	if len(hash) > 0 {
		head.Hash = hashPrefix + hex.EncodeToString(hash)
	}
	return head
}

// record appends to the org's chain.
func (k *Ring) record(ctx context.Context, tx *database.Tx, r chain.Record) error {
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
	line, err := chain.Next(HeadOf(row.Seq, row.Hash), r, chain.Signer{Chain: org, Key: key})
	if err != nil {
		return fmt.Errorf("record in chain: %w", err)
	}
	hash, err := hex.DecodeString(strings.TrimPrefix(line.Hash, hashPrefix))
	if err != nil {
		return fmt.Errorf("record in chain: %w", err)
	}
	if err := tx.AppendAuditRecord(ctx, ctldb.AppendAuditRecordParams{Chain: org, Seq: line.Seq, Prev: append([]byte{}, row.Hash...), Hash: hash, Body: line.Raw}); err != nil {
		return fmt.Errorf("record in chain: %w", err)
	}
	return tx.MoveAuditHead(ctx, ctldb.MoveAuditHeadParams{Chain: org, Seq: line.Seq, Hash: hash})
}
