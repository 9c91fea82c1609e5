package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// held are events that wait until the customer has decided about the chain.
type held struct {
	path string
	now  func() time.Time

	mu sync.Mutex
}

// mostHeld keeps a decision that nobody makes from filling the disk.
const mostHeld = 10_000

func (h *held) add(record chain.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var records []chain.Record
	if _, err := datadir.ReadJSON(h.path, &records); err != nil {
		return err
	}
	if len(records) >= mostHeld {
		return fmt.Errorf("%d events wait for a decision about the chain, and there is no room for more", len(records))
	}
	if record.Time.IsZero() {
		record.Time = h.now().UTC()
	}
	return datadir.WriteJSON(h.path, append(records, record))
}

// recordHeld appends the events that waited. After a crash in between some are
// there twice, with the same time.
func (a *agent) recordHeld(ctx context.Context) error {
	h := a.chain.held
	h.mu.Lock()
	defer h.mu.Unlock()
	var records []chain.Record
	if !readSpare(ctx, a, h.path, &records) {
		return nil
	}
	for _, record := range records {
		if _, err := a.chain.Append(ctx, record); err != nil {
			return err
		}
	}
	return datadir.Remove(h.path)
}
