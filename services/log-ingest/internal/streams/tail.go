package streams

import (
	"context"
	"time"

	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/logdb"
	"github.com/berth-dev/berth/services/log-ingest/internal/database"
)

// A Tail follows one stream. Close it.
type Tail struct {
	streams *Streams
	org, id string
	after   int64
	woken   *store.Subscription
}

// Tail follows a stream of the org from behind a number.
func (s *Streams) Tail(ctx context.Context, org, id string, after int64) (*Tail, error) {
	err := s.store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error {
		_, err := get(ctx, tx, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	// Subscribed before the first look: what comes after the look wakes.
	return &Tail{streams: s, org: org, id: id, after: after, woken: s.listener.Subscribe(model.ChannelLogs, id)}, nil
}

// Close ends the tail; it may be called more than once.
func (t *Tail) Close() { t.woken.Close() }

// Next waits for records and returns them in order, each once. After the last
// one of a stream that has ended it returns the stream. When nothing comes for
// the time of patience it returns neither.
func (t *Tail) Next(ctx context.Context, patience time.Duration) (records []Numbered, end *Stream, err error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for patient := true; ; {
		records, end, err = t.look(ctx)
		if err != nil || len(records) > 0 || end != nil || !patient {
			return records, end, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-t.woken.C:
		case <-timer.C:
			patient = false // one more look, in case a notification got lost
		}
	}
}

func (t *Tail) look(ctx context.Context) (records []Numbered, end *Stream, err error) {
	err = t.streams.store.Tx(ctx, t.org, func(ctx context.Context, tx *database.Tx) error {
		var row logdb.LogStream
		row, err := get(ctx, tx, t.id) // before the lines: the end is the end of all of them
		if err != nil {
			return err
		}
		records, err = t.streams.look(ctx, tx, row, t.after, chunksPerLook)
		if err != nil || len(records) > 0 || row.State == model.StreamOpen {
			return err
		}
		stream, err := t.streams.withGaps(ctx, tx, row)
		end = &stream
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if n := len(records); n > 0 {
		t.after = records[n-1].Seq
	}
	return records, end, nil
}
