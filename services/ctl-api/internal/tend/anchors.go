package tend

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

const (
	// anchorEvery is how often the head of an install's chain goes into the org's
	// chain, unless a workflow ends in between.
	anchorEvery = time.Hour
	// anchorActor is named in the chain for what nobody asked for.
	anchorActor = "ctl-api"
)

// anchorHead records in the org's chain how far the install's chain has come,
// as runner-api stored it, so that its writer cannot rewrite or cut it unseen.
// An anchor that is not due yet gets another look when it is.
func (t *Tender) anchorHead(ctx context.Context, org, installID string, now time.Time) error {
	err := t.Store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error {
		install, err := tx.LockInstallRow(ctx, installID) // one at a time
		if err != nil {
			return err
		}
		head, err := tx.HeadToAnchor(ctx, installID)
		if errors.Is(err, fault.ErrNotFound) {
			return nil // it has recorded nothing yet
		}
		if err != nil {
			return err
		}
		due, grown := anchorDue(head)
		switch {
		case !grown:
			return nil
		case due.After(now):
			return t.Waker.WakeInstallAt(ctx, tx, installID, due)
		}
		err = tx.MoveAnchoredHead(ctx, ctldb.MoveAnchoredHeadParams{InstallID: installID, Seq: head.Seq, Hash: head.Hash, AnchoredAt: now})
		if err != nil {
			return err
		}
		return t.Publisher.Keys.Anchor(ctx, tx, keys.Anchored{
			Actor: anchorActor, What: "head of install " + install.Name, Chain: installID, Head: keys.HeadOf(head.Seq, head.Hash),
		})
	})
	if err != nil {
		return fmt.Errorf("anchor chain: %w", err)
	}
	return nil
}

// anchorDue is when the head should be recorded: the zero time means now. grown
// is false when the last one says it all.
func anchorDue(head ctldb.HeadToAnchorRow) (due time.Time, grown bool) {
	switch {
	case head.Seq <= head.AnchoredSeq:
		return time.Time{}, false
	case head.AnchoredAt == nil, head.WorkflowEnded:
		return time.Time{}, true
	}
	return head.AnchoredAt.Add(anchorEvery), true
}
