package logship

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/berth-dev/berth/pkg/pause"
)

const (
	// defaultInterval is the least time between two batches of one stream: the
	// first line leaves at once, a flood is sent in few requests, and a tail
	// stays well under its 250 ms.
	defaultInterval = 150 * time.Millisecond

	minBackoff = 100 * time.Millisecond
	// maxBackoff keeps recovery after an outage under 15 s.
	maxBackoff = 5 * time.Second
	// sendTimeout is for one batch of 1 MiB over a slow line.
	sendTimeout = 30 * time.Second
)

// What a Sink answers when a batch cannot be taken now or ever. Any other error
// is an outage: the batch is sent again.
var (
	// ErrClosed: the attempt was voided; nobody wants its lines any more.
	ErrClosed = errors.New("log stream is closed")
	// ErrConflict: the other side has other lines under the same numbers.
	ErrConflict = errors.New("log stream has other lines")
	// ErrFinished: the stream has its end already. It is an ErrConflict too.
	ErrFinished = fmt.Errorf("%w: it was finished", ErrConflict)
)

// GapError says that lines before the batch, or before the end, are missing.
type GapError struct {
	NextSeq int64 // the line that is wanted
	Hash    Hash  // the running hash before it, zero when it was not said
}

func (e *GapError) Error() string { return fmt.Sprintf("log stream wants line %d first", e.NextSeq) }

// ConflictError is ErrConflict with where the stream stands.
type ConflictError struct{ Head Head }

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%v: it goes on at line %d", ErrConflict, e.Head.NextSeq)
}

// Unwrap is ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }

// End is how a stream ends.
type End struct {
	TotalLines    int64
	Hash          Hash
	LateRedaction bool
}

// A Sink takes the lines of one stream: log-ingest, through [HTTPSink].
type Sink interface {
	// Append answers the number of the next line that is wanted.
	Append(ctx context.Context, b Batch) (nextSeq int64, err error)
	Finish(ctx context.Context, end End) error
}

// A Shipper sends what a spool holds to a sink.
type Shipper struct {
	Spool *Spool
	Sink  Sink
	// Log gets one line when sending begins to fail and one when it works again.
	Log *slog.Logger
	// Interval is the least time between two batches; 0 means 150 ms.
	// What comes with the end of the spool is sent at once.
	Interval time.Duration
	// Withhold keeps lines back that were stored; nil keeps none.
	Withhold *Withholding
}

// Run sends until the spool is finished and the sink has agreed to its end;
// then it returns nil, and the spool can be removed. It returns ErrClosed,
// ErrConflict or an OutOfRangeError when sending can never go on (the spool is
// kept), and the cause of ctx when that ends. Outages are waited for.
func (s Shipper) Run(ctx context.Context) error {
	if s.Interval == 0 {
		s.Interval = defaultInterval
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	at, err := s.Spool.seek(0)
	if err != nil {
		return err
	}
	for {
		changed := s.Spool.changes()
		batch, after, err := s.Spool.read(at)
		if err != nil {
			return err
		}
		switch pos := s.Spool.Position(); {
		case len(batch.Frames) > 0:
			before := at.head.NextSeq
			at, err = s.send(ctx, batch, after)
			if errors.Is(err, errWithheld) {
				if at, err = s.withhold(ctx, before); err == nil {
					continue
				}
			}
			if err != nil {
				return err
			}
			if len(batch.Frames) > MaxBatch/2 {
				continue // a backlog: no reason to collect more
			}
			if err := s.collect(ctx); err != nil {
				return err
			}
		case pos.Final && pos.Head == after.head:
			again, err := s.finish(ctx, End{TotalLines: pos.Head.NextSeq - 1, Hash: pos.Head.Hash, LateRedaction: pos.LateRedaction})
			if again == nil {
				return err
			}
			at = *again
		default:
			at = after
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-changed:
			}
		}
	}
}

// collect waits for lines of the next batch: for the interval, or until no more will
// come.
func (s Shipper) collect(ctx context.Context) error {
	due := time.NewTimer(s.Interval)
	defer due.Stop()
	for {
		changed := s.Spool.changes()
		if s.Spool.Position().Final {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-due.C:
			return nil
		case <-changed:
		}
	}
}

// send sends one batch, again and again while the other side is away, and
// returns where to go on.
func (s Shipper) send(ctx context.Context, batch Batch, after cursor) (cursor, error) {
	var next int64
	err := s.retry(ctx, func(ctx context.Context) (err error) {
		if s.Withhold.wants(batch) {
			return errWithheld
		}
		next, err = s.Sink.Append(ctx, batch)
		return err
	})
	var gap *GapError
	if errors.As(err, &gap) {
		at, sought := s.Spool.seek(gap.NextSeq)
		if sought == nil {
			return at, nil
		}
		err = errors.Join(sought, err)
	}
	if err != nil {
		at, err := s.settled(ctx, err)
		if at == nil {
			return cursor{}, err
		}
		return *at, err
	}
	if next > s.Spool.Position().Head.NextSeq && s.Spool.astray() {
		return s.overtake(ctx, after.head)
	}
	if err := s.Spool.arrived(); err != nil && !errors.Is(err, ErrFull) {
		return cursor{}, err
	}
	if err := s.Spool.ack(next); err != nil {
		return cursor{}, err
	}
	if next == after.head.NextSeq {
		return after, nil
	}
	return s.Spool.seek(next) // it has more of us than we knew
}

// finish says the end. It returns a cursor when lines must be sent again first.
func (s Shipper) finish(ctx context.Context, end End) (*cursor, error) {
	err := s.retry(ctx, func(ctx context.Context) error { return s.Sink.Finish(ctx, end) })
	if err == nil {
		return nil, nil //nolint:nilnil // nothing is to be sent again
	}
	var gap *GapError
	if errors.As(err, &gap) {
		at, sought := s.Spool.seek(gap.NextSeq)
		if sought == nil {
			return &at, nil
		}
		err = errors.Join(sought, err)
	}
	return s.settled(ctx, err)
}

// retry calls do until it answers something that another try cannot change.
func (s Shipper) retry(ctx context.Context, do func(context.Context) error) error {
	since := time.Now()
	for try := 0; ; try++ {
		tryCtx, cancel := context.WithTimeout(ctx, sendTimeout)
		err := do(tryCtx)
		cancel()
		var gap *GapError
		switch {
		case err == nil, errors.As(err, &gap), errors.Is(err, ErrClosed), errors.Is(err, ErrConflict), errors.Is(err, errWithheld):
			if try > 0 && err == nil {
				s.Log.InfoContext(ctx, "log shipping works again", "after", time.Since(since), "tries", try+1)
			}
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case try == 0:
			s.Log.WarnContext(ctx, "log shipping fails, lines wait in the spool", "err", err)
		}
		if err := pause.For(ctx, backoff(try)); err != nil {
			return err
		}
	}
}

// backoff doubles up to maxBackoff.
func backoff(try int) time.Duration {
	return pause.Jittered(min(minBackoff<<min(try, 10), maxBackoff))
}
