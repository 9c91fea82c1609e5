package logship

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/berth-dev/berth/pkg/pause"
)

// Withholding keeps lines back that are in the spool and have not left yet.
type Withholding struct {
	// Off is asked before anything leaves: whether lines are to stay here now.
	Off func() bool
	// Keep says of a record that it may leave all the same.
	Keep func(Record) bool
	// Note takes the place of the lines that stay; Keep has to let it pass.
	Note string
	// Store takes the lines that stay, before they are removed from the spool. What it
	// answers is for the log: the lines do not leave because they cannot be stored.
	Store func(lines []byte) error
}

// errWithheld: the customer has switched off what a batch has, while it waited.
var errWithheld = errors.New("lines are withheld")

// wants says whether a batch has lines that may not leave now.
func (w *Withholding) wants(b Batch) bool {
	if w == nil || !w.Off() {
		return false
	}
	for rest := b.Frames; len(rest) > 0; {
		frame, after, err := CutFrame(rest)
		if err != nil || !w.Keep(DecodeFrame(frame)) {
			return true
		}
		rest = after
	}
	return false
}

// left takes the lines that stay out of frames. noted: there is a note already.
func (w *Withholding) left(frames []byte, noted bool) (left, lines []byte, err error) {
	for len(frames) > 0 {
		frame, rest, err := CutFrame(frames)
		if err != nil {
			return nil, nil, err
		}
		frames = rest
		record := DecodeFrame(frame)
		if w.Keep(record) {
			left = append(left, frame...)
			continue
		}
		lines = append(lines, record.Text...)
		if !record.Continues {
			lines = append(lines, '\n')
		}
		if !noted {
			noted = true
			left = AppendFrame(left, Record{Time: time.Now().UTC(), Source: Agent, Text: w.Note})
		}
	}
	return left, lines, nil
}

// withhold writes the spool again from line next on, without the lines that stay: a note
// takes their place. Those of the last batch may have arrived all the same, so the spool
// is astray afterwards: the other side says where it stands.
func (s Shipper) withhold(ctx context.Context, next int64) (cursor, error) {
	for {
		err := s.Spool.withhold(next, s.Withhold, func(err error) {
			s.Log.WarnContext(ctx, "withheld log lines are not kept", "err", err)
		})
		if err == nil {
			return s.Spool.seek(0)
		}
		if !errors.Is(err, ErrFull) {
			return cursor{}, err
		}
		if err := pause.For(ctx, fullRetry); err != nil { // nothing leaves until there is room
			return cursor{}, err
		}
	}
}

func (s *Spool) withhold(next int64, w *Withholding, lost func(error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tmp := s.dir + settlingSuffix
	if err := os.RemoveAll(tmp); err != nil {
		return fmt.Errorf("withhold log lines: %w", err)
	}
	noted := false
	err := s.rewrite(tmp, rewriting{from: next, astray: true, edit: func(frames []byte) ([]byte, error) {
		left, lines, err := w.left(frames, noted)
		if len(lines) > 0 {
			noted = true
			if err := w.Store(lines); err != nil {
				lost(err)
			}
		}
		return left, err
	}})
	if err != nil {
		return errors.Join(diskError(err), os.RemoveAll(tmp))
	}
	if err := s.replace(); err != nil {
		return fmt.Errorf("withhold log lines: %w", err)
	}
	return nil
}
