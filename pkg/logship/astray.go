package logship

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/berth-dev/berth/pkg/durable"
	"github.com/berth-dev/berth/pkg/pause"
)

// What a settling spool has next to its directory for a moment.
const (
	settlingSuffix = ".settling" // the same lines under their new numbers
	astraySuffix   = ".astray"   // under the old ones, to be deleted
)

// cutText says in the log that a spool had lost its place in the stream.
const cutText = "lines may be missing here, or come twice: the log spool on the runner's disk was damaged"

// ReplaceSpool makes a new spool in dir for a stream whose spool was damaged and
// moved away. Its first line is text, marked as one that stands for lost lines.
// The files of the engine are read on from stdout and stderr. Which number the
// stream gives to the first line is not known before the other side was asked:
// until then the spool is astray, and a Shipper lets it settle.
func ReplaceSpool(dir string, opt Options, text string, from Position) (*Spool, error) {
	s, err := OpenSpool(dir, opt)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.pos
	next.Stdout, next.Stderr, next.LateRedaction, next.Astray = from.Stdout, from.Stderr, from.LateRedaction, true
	if err := s.write(next, []Record{{Time: time.Now().UTC(), Source: Agent, Lost: true, Text: text}}, s.maxBytes); err != nil {
		closeAll(s.segments)
		return nil, err
	}
	return s, nil
}

// LastPosition finds the position after the last whole block in what is left of
// a damaged spool; found is false when there is none.
func LastPosition(dir string) (last Position, found bool) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
	if err != nil {
		return Position{}, false
	}
	for i := len(paths) - 1; i >= 0; i-- { // sorted by name, which is by number
		file, err := os.Open(paths[i])
		if err != nil {
			continue
		}
		info, err := file.Stat()
		for off := int64(0); err == nil; {
			var b block
			if b, off, err = readBlock(file, off, info.Size()); err == nil {
				last, found = b.after, true
			}
		}
		_ = file.Close()
		if found {
			return last, true
		}
	}
	return Position{}, false
}

// astray reports whether the numbers of the lines may not be the stream's.
func (s *Spool) astray() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pos.Astray || s.cut
}

// arrived notes that the other side took the lines under their numbers.
func (s *Spool) arrived() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = false
	if !s.pos.Astray {
		return nil
	}
	next := s.pos
	next.Astray = false
	return s.write(next, nil, s.maxBytes+2*segmentBytes)
}

// settle gives all lines the numbers behind head, where the stream stands. The
// spool is written again next to itself and then put in its own place.
func (s *Spool) settle(head Head) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tmp := s.dir + settlingSuffix
	if err := os.RemoveAll(tmp); err != nil {
		return fmt.Errorf("settle log spool: %w", err)
	}
	if err := s.renumber(tmp, head); err != nil {
		return errors.Join(diskError(err), os.RemoveAll(tmp))
	}
	closeAll(s.segments)
	err := os.Rename(s.dir, s.dir+astraySuffix)
	if err == nil {
		err = takeSettled(s.dir)
	}
	if err != nil {
		return fmt.Errorf("settle log spool: %w", err)
	}
	segments, pos, _, err := openSegments(s.dir)
	if err != nil {
		return fmt.Errorf("settle log spool: %w", err)
	}
	s.segments, s.pos, s.cut, s.used = segments, pos, false, 0
	for _, seg := range segments {
		s.used += seg.size
	}
	s.signal()
	return nil
}

// renumber writes the lines of s into a new spool in dir that begins at head.
func (s *Spool) renumber(dir string, head Head) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	first, _, err := readBlock(s.segments[0].file, 0, s.segments[0].size)
	if err != nil {
		return err
	}
	to := &Spool{dir: dir, maxBytes: s.maxBytes, changed: make(chan struct{}), pos: first.after}
	to.pos.Head, to.pos.Astray = head, false
	seg, err := createSegment(dir, to.pos)
	if err != nil {
		return err
	}
	to.segments = []*segment{seg}
	defer func() { closeAll(to.segments) }()
	room := 2*s.used + s.maxBytes // it fitted before
	if !s.pos.Astray {
		if err := to.write(to.pos, []Record{{Time: time.Now().UTC(), Source: Agent, Lost: true, Text: cutText}}, room); err != nil {
			return err
		}
	}
	for _, seg := range s.segments {
		for off := int64(0); ; {
			b, after, err := readBlock(seg.file, off, seg.size)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			next := b.after
			next.Head, next.Astray = to.pos.Head, false
			if err := to.store(next, b.frames, b.count, room); err != nil {
				return err
			}
			off = after
		}
	}
	return to.sync()
}

// takeSettled puts a settled spool, if there is one, in its place, and clears up.
// A spool without its directory was caught between the two renames; one with
// both was caught before the first, and is still whole.
func takeSettled(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		err := os.Rename(dir+settlingSuffix, dir)
		if err == nil {
			err = durable.SyncDir(filepath.Dir(dir))
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return errors.Join(os.RemoveAll(dir+settlingSuffix), os.RemoveAll(dir+astraySuffix))
}

// settled lets an astray spool settle behind the head that the answer names, and
// returns where to go on; nil when err is not such an answer.
func (s Shipper) settled(ctx context.Context, err error) (*cursor, error) {
	head, known := headOf(err)
	if !known || !s.Spool.astray() {
		return nil, err
	}
	s.Log.WarnContext(ctx, "log spool had lost its place in the stream and goes on behind what is there", "next_seq", head.NextSeq)
	for {
		err := s.Spool.settle(head)
		if errors.Is(err, ErrFull) {
			if err := pause.For(ctx, fullRetry); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		at, err := s.Spool.seek(0)
		return &at, err
	}
}

// overtake is for an astray spool whose stream has more lines than the spool:
// it continues after them. The other side says where that is, when it gets an
// end that is none.
func (s Shipper) overtake(ctx context.Context, ours Head) (cursor, error) {
	err := s.retry(ctx, func(ctx context.Context) error {
		return s.Sink.Finish(ctx, End{TotalLines: ours.NextSeq - 1, Hash: ours.Hash})
	})
	if err == nil {
		return cursor{}, fmt.Errorf("%w at line %d", ErrFinished, ours.NextSeq-1)
	}
	at, err := s.settled(ctx, err)
	if at == nil {
		return cursor{}, err
	}
	return *at, err
}

// headOf is where the other side says that the stream stands.
func headOf(err error) (Head, bool) {
	var conflict *ConflictError
	var gap *GapError
	switch {
	case errors.As(err, &conflict):
		return conflict.Head, true
	case errors.As(err, &gap):
		return Head{NextSeq: gap.NextSeq, Hash: gap.Hash}, gap.NextSeq == 1 || gap.Hash != Hash{}
	}
	return Head{}, false
}
