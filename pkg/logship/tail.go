package logship

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	// window is how much of a file is read at once, and so the longest piece
	// of a line that waits for its end.
	window = 256 << 10

	defaultFullWait = 10 * time.Minute
	// fullRetry is how often a full disk is tried again; room in the spool
	// itself is announced.
	fullRetry = time.Second
)

// Tail follows a file that an engine writes and puts its lines into a spool.
// The offset lives in the spool, so a Tail of a restarted agent continues where
// the last stored line ends. The file only grows; rotation is not supported.
type Tail struct {
	Spool  *Spool
	Path   string
	Source Source // Stdout or Stderr
	// Redact replaces secrets before a line is stored; nil keeps all as it is.
	Redact Redactor
	// FullWait is how long a full spool holds up the reading before lines are
	// dropped and counted; 0 means 10 minutes.
	FullWait time.Duration
}

// Run follows the file until ended is closed, which says that nobody writes to
// it any more; then it takes what is left, also a last line without a line end,
// and returns nil. When ctx ends first it returns the cause, and the next Run
// goes on from there.
func (t Tail) Run(ctx context.Context, ended <-chan struct{}) error {
	if t.Redact == nil {
		t.Redact = RedactFunc(func(raw []byte) []byte { return raw })
	}
	if t.FullWait == 0 {
		t.FullWait = defaultFullWait
	}
	pos := t.Spool.Position()
	at := pos.offset(t.Source)
	if at == nil {
		return fmt.Errorf("tail %s: %v is not a source that has a file", t.Path, t.Source)
	}
	file, err := os.Open(t.Path)
	if err != nil {
		return fmt.Errorf("tail: %w", err)
	}
	defer file.Close()
	grown, stop, err := watch(t.Path) // before the first look, so nothing is missed
	if err != nil {
		return err
	}
	defer stop()

	reading := reading{file: file, offset: *at, buf: make([]byte, window)}
	for {
		last := isClosed(ended) // asked before the look at the file
		n, err := t.take(ctx, &reading, last)
		if err != nil {
			return err
		}
		if n > 0 {
			continue
		}
		if last {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ended:
		case <-grown:
		}
	}
}

// reading is how far a file is stored.
type reading struct {
	file   *os.File
	offset int64
	buf    []byte
}

// take stores what can be stored of the file behind the offset, moves that, and
// returns how many bytes it was.
func (t Tail) take(ctx context.Context, r *reading, last bool) (int64, error) {
	size, err := r.file.ReadAt(r.buf, r.offset)
	if err != nil && err != io.EOF {
		return 0, fmt.Errorf("tail %s: %w", t.Path, err)
	}
	raw, ended := r.buf[:size], last && err == io.EOF
	full := size == len(r.buf)
	for {
		n := cut(raw, t.Redact.Hold, full, ended)
		if n == 0 {
			return 0, nil
		}
		records := split(t.Redact.Bytes(raw[:n]), t.Source, time.Now().UTC(), ended)
		err := t.store(ctx, records, r.offset+int64(n))
		if !errors.Is(err, errTooBig) || len(raw) == 1 {
			r.offset += int64(n)
			return int64(n), err
		}
		// Very many short lines: their frames are larger than a block takes.
		raw, full, ended = raw[:len(raw)/2], true, false
	}
}

// store waits for room, up to FullWait, and then drops the records and counts
// them.
func (t Tail) store(ctx context.Context, records []Record, offset int64) error {
	deadline := time.Now().Add(t.FullWait)
	for {
		changed := t.Spool.changes()
		err := t.Spool.Append(records, t.Source, offset)
		if !errors.Is(err, ErrFull) {
			return err
		}
		// Lines are already being dropped: go on until there is room.
		if t.Spool.Position().Dropped > 0 || time.Now().After(deadline) {
			err := t.Spool.Drop(int64(len(records)), t.Source, offset)
			if !errors.Is(err, ErrFull) {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		case <-time.After(min(fullRetry, max(time.Until(deadline), time.Millisecond))):
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
