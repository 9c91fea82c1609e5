package scripts

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/disk"
)

// Chain takes records.
type Chain interface {
	Append(ctx context.Context, r chain.Record) (chain.Head, error)
}

// Ledger counts runs of scripts and refusals on disk and records them in the chain. A record
// is in the chain before the count is written: after a crash it may stand there
// twice, but none is lost. Safe for concurrent use.
type Ledger struct {
	path  string
	chain Chain
	disk  *disk.Guard
	now   func() time.Time

	mu    sync.Mutex
	tally Tally
	// unwritten: the tally has not reached the disk since it changed.
	unwritten bool
}

// OpenLedger reads the count at path; an empty one when there is no file. On a
// full disk the count takes of the reserve of guard, which may be nil.
func OpenLedger(path string, to Chain, guard *disk.Guard, now func() time.Time) (*Ledger, error) {
	l := &Ledger{path: path, chain: to, disk: guard, now: now}
	if _, err := datadir.ReadJSON(path, &l.tally); err != nil {
		return nil, fmt.Errorf("count of script runs: %w", err)
	}
	return l, nil
}

// Ran counts a run, once per key.
func (l *Ledger) Ran(ctx context.Context, r Run) error {
	return l.move(ctx, func(t Tally) (Tally, []chain.Record) { return t.Add(r, l.now()) })
}

// Refused records that a script was not run because it was not accepted, once
// per digest. by says what carried it.
func (l *Ledger) Refused(ctx context.Context, name, digest, by string) error {
	return l.move(ctx, func(t Tally) (Tally, []chain.Record) { return t.Refuse(name, digest, by, l.now()) })
}

// Refusal records that something was refused. Of too many in an hour only the
// number is recorded, when the hour is over.
func (l *Ledger) Refusal(ctx context.Context, r chain.Record) error {
	return l.move(ctx, func(t Tally) (Tally, []chain.Record) { return t.Refusal(r, l.now()) })
}

// Flush records what was counted, when an hour has passed or the agent ends.
func (l *Ledger) Flush(ctx context.Context, ending bool) error {
	return l.move(ctx, func(t Tally) (Tally, []chain.Record) { return t.Due(l.now(), ending) })
}

func (l *Ledger) move(ctx context.Context, step func(Tally) (Tally, []chain.Record)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	next, records := step(l.tally)
	for _, r := range records {
		if _, err := l.chain.Append(ctx, r); err != nil {
			return fmt.Errorf("chain: %w", err)
		}
	}
	// What is in the chain is counted, also when the count cannot be written now:
	// a second try writes it, and records nothing twice.
	l.unwritten = l.unwritten || len(records) > 0 || next.Count != l.tally.Count || next.Unlisted != l.tally.Unlisted
	l.tally = next
	if !l.unwritten {
		return nil
	}
	if err := l.disk.Insist(func() error { return datadir.WriteJSON(l.path, next) }); err != nil {
		return fmt.Errorf("count of script runs: %w", err)
	}
	l.unwritten = false
	return nil
}
