package stream

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/berth-dev/berth/pkg/pause"
	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

const (
	// batch is how many events one transaction numbers.
	batch = 1000
	// sweep makes up for a hint that was lost with the process that should have
	// sent it, and is how soon a runner counts as heard.
	sweep = 10 * time.Second
	// offlineAfter is the silence after which a runner counts as offline, as in the
	// metrics and in the status of installs.
	offlineAfter = 2 * time.Minute
	// partitionsEvery is how often partitions are made ahead and old ones dropped;
	// aheadDays is how long the service may then be down.
	partitionsEvery = time.Hour
	aheadDays       = 7
	// gather is how long the sequencer waits for more after it was woken: what is
	// committed meanwhile gets its numbers in the same transaction.
	gather = 20 * time.Millisecond
	// afterFailure is the pause before the next look when the database failed.
	afterFailure = time.Second
)

var (
	instruments = telemetry.InstrumentsOf("services/ctl-api/stream")
	numbered    = instruments.Counter("event.numbered", "{batch}", "batches of events that got their numbers")
)

// Sequencer gives events their numbers. Any number of replicas may run one.
type Sequencer struct {
	Store    *database.Store
	Listener *store.Listener
	// KeepDays is for how many days events, deliveries and points of numbers are kept;
	// at least 7.
	KeepDays int
	Log      *slog.Logger

	wake chan struct{}
}

// NewSequencer makes one that listens from now on, so that no hint gets lost
// before Run. The listener must listen on model.ChannelOutbox.
func NewSequencer(s Sequencer) *Sequencer {
	s.wake = make(chan struct{}, 1)
	s.Listener.Handle(model.ChannelOutbox, func(string) { s.poke() })
	s.Listener.OnResync(func(context.Context) { s.poke() })
	return &s
}

func (s *Sequencer) poke() {
	select {
	case s.wake <- struct{}{}:
	default: // one look is already asked for
	}
}

// Run numbers events as they come, until ctx ends.
func (s *Sequencer) Run(ctx context.Context) error {
	ticks := time.NewTicker(sweep)
	defer ticks.Stop()
	var kept time.Time
	for {
		if time.Since(kept) > partitionsEvery {
			if err := s.keepPartitions(ctx); err == nil {
				kept = time.Now()
			} else if ctx.Err() == nil {
				s.Log.WarnContext(ctx, "partitions of events not kept", "err", err)
			}
		}
		if _, err := s.Number(ctx); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "events not numbered", "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(afterFailure):
				s.poke()
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
			if pause.For(ctx, gather) != nil {
				return nil
			}
		case <-ticks.C:
			if err := s.notePresence(ctx); err != nil && ctx.Err() == nil {
				s.Log.WarnContext(ctx, "presence of runners not noted", "err", err)
			}
		}
	}
}

// Number gives everything that is committed its number and wakes the readers of
// each org. It returns the last number of each org that got events.
func (s *Sequencer) Number(ctx context.Context) (heads map[string]int64, err error) {
	heads = map[string]int64{}
	for {
		var rows []ctldb.NumberEventsRow
		err := s.Store.System(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
			rows, err = tx.NumberEvents(ctx, batch)
			for _, row := range rows {
				tx.NotifyAfterCommit(model.ChannelEvents, row.OrgID)
			}
			return err
		})
		if err != nil {
			return heads, fmt.Errorf("number events: %w", err)
		}
		if len(rows) == 0 {
			return heads, nil
		}
		numbered.Add(ctx, 1)
		for _, row := range rows {
			heads[row.OrgID] = row.Head
		}
	}
}

// notePresence has the events written that no row of a runner tells by itself.
func (s *Sequencer) notePresence(ctx context.Context) error {
	return s.Store.System(ctx, func(ctx context.Context, tx *database.Tx) error {
		_, err := tx.NotePresence(ctx, offlineAfter.Seconds())
		return err
	})
}

func (s *Sequencer) keepPartitions(ctx context.Context) error {
	return s.Store.System(ctx, func(ctx context.Context, tx *database.Tx) error {
		dropped, err := tx.KeepEventPartitions(ctx, ctldb.KeepEventPartitionsParams{KeepDays: int32(s.KeepDays), AheadDays: aheadDays})
		if len(dropped) > 0 {
			s.Log.InfoContext(ctx, "partitions of events dropped", "partitions", dropped)
		}
		return err
	})
}
