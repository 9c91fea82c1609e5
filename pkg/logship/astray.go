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
	w := rewriting{head: &head}
	if !s.pos.Astray {
		w.first = []Record{{Time: time.Now().UTC(), Source: Agent, Lost: true, Text: cutText}}
	}
	if err := s.rewrite(tmp, w); err != nil {
		return errors.Join(diskError(err), os.RemoveAll(tmp))
	}
	if err := s.replace(); err != nil {
		return fmt.Errorf("settle log spool: %w", err)
	}
	return nil
}

// replace puts the spool that was written next to this one in its place. mu is held.
func (s *Spool) replace() error {
	closeAll(s.segments)
	err := os.Rename(s.dir, s.dir+astraySuffix)
	if err == nil {
		err = takeSettled(s.dir)
	}
	if err != nil {
		return err
	}
	segments, pos, _, err := openSegments(s.dir)
	if err != nil {
		return err
	}
	s.segments, s.pos, s.cut, s.used = segments, pos, false, 0
	for _, seg := range segments {
		s.used += seg.size
	}
	s.signal()
	return nil
}

// rewriting is how the lines of a spool are written again.
type rewriting struct {
	from   int64    // the first line; 0 for the oldest
	head   *Head    // where the new spool begins; nil for where from is now
	first  []Record // come before the lines
	astray bool     // whether the numbers are the stream's is not known
	// edit changes the lines of a block; nil leaves them.
	edit func(frames []byte) ([]byte, error)
}

// rewrite writes the lines of s into a new spool in dir. mu is held.
func (s *Spool) rewrite(dir string, w rewriting) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	begin, at, err := s.before(w.from)
	if err != nil {
		return err
	}
	if w.head != nil {
		begin.Head = *w.head
	}
	begin.Astray = w.astray
	to := &Spool{dir: dir, maxBytes: s.maxBytes, changed: make(chan struct{}), pos: begin}
	seg, err := createSegment(dir, to.pos)
	if err != nil {
		return err
	}
	to.segments = []*segment{seg}
	defer func() { closeAll(to.segments) }()
	room := 2*s.used + s.maxBytes // it fitted before
	put := func(after Position, frames []byte) error {
		if w.edit != nil {
			if frames, err = w.edit(frames); err != nil {
				return err
			}
		}
		records := 0
		for rest := frames; len(rest) > 0; records++ {
			if _, rest, err = CutFrame(rest); err != nil {
				return err
			}
		}
		after.Head, after.Astray = to.pos.Head, w.astray
		return to.store(after, frames, records, room)
	}
	if len(w.first) > 0 {
		if err := to.write(to.pos, w.first, room); err != nil {
			return err
		}
	}
	if len(at.pending) > 0 {
		if err := put(at.after, at.pending); err != nil {
			return err
		}
	}
	for ; at.seg != nil; at.seg, at.off = s.following(at.seg), 0 {
		for {
			b, after, err := readBlock(at.seg.file, at.off, at.seg.size)
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil {
				err = put(b.after, b.frames)
			}
			if err != nil {
				return err
			}
			at.off = after
		}
	}
	return to.sync()
}

// before finds the position before line next (0 for the oldest there is), and the place
// behind it. mu is held.
func (s *Spool) before(next int64) (p Position, at place, err error) {
	at.seg = s.segments[0]
	b, off, err := readBlock(at.seg.file, 0, at.seg.size) // the first block of a segment has no lines
	if err != nil {
		return p, at, err
	}
	for p, at.off = b.after, off; p.Head.NextSeq < next; {
		b, off, err := readBlock(at.seg.file, at.off, at.seg.size)
		switch following := s.following(at.seg); {
		case errors.Is(err, io.EOF) && following != nil:
			at.seg, at.off = following, 0
		case err != nil:
			return p, at, err
		case b.after.Head.NextSeq <= next:
			p, at.off = b.after, off
		default: // inside this block
			at.off, at.after = off, b.after
			p.Head, at.pending, err = p.Head.Advance(b.frames, next)
			return p, at, err
		}
	}
	return p, at, nil
}

// place is behind a line of a spool.
type place struct {
	seg     *segment
	off     int64
	pending []byte   // frames of the block before off
	after   Position // behind these
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
