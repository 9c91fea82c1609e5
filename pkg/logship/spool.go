package logship

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	defaultMaxBytes = 64 << 20
	// segmentBytes is where a new segment begins; disk is freed in this step.
	segmentBytes = 1 << 20
)

// ErrFull says that the spool has no room, on its own account or on the disk.
// It goes away when lines are acknowledged, or when the disk has room again.
var ErrFull = errors.New("log spool is full")

// errTooBig says that one block cannot hold the records: give fewer.
var errTooBig = errors.New("records do not fit one block")

// Options are the limits of a spool.
type Options struct {
	// MaxBytes is how much disk the spool may use; 0 means 64 MiB. It is at
	// least four segments of 1 MiB.
	MaxBytes int64
}

// A Spool keeps the lines of one stream on disk until they are acknowledged,
// numbers them, and remembers how far the engine's files were read. It is safe
// for concurrent use; one process at a time may have it open (the agent holds a
// lock on its data directory).
//
// Every write reaches the kernel before the call returns, so a killed process
// loses nothing. Blocks are synced to the disk before they are sent, when a
// segment is full, and at Finish.
type Spool struct {
	dir      string
	maxBytes int64

	mu       sync.Mutex
	segments []*segment // oldest first; the last one is written to
	pos      Position
	used     int64
	cut      bool          // something was cut off when it was opened
	removed  bool          // nobody takes its lines any more
	changed  chan struct{} // closed and replaced whenever anything below mu changes
}

// OpenSpool opens the spool of one stream in its own directory, and makes it if
// it is not there.
func OpenSpool(dir string, opt Options) (*Spool, error) {
	if opt.MaxBytes == 0 {
		opt.MaxBytes = defaultMaxBytes
	}
	s := &Spool{dir: dir, maxBytes: max(opt.MaxBytes, 4*segmentBytes), changed: make(chan struct{})}
	if err := takeSettled(dir); err != nil {
		return nil, fmt.Errorf("open log spool %s: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make log spool: %w", err)
	}
	segments, pos, cut, err := openSegments(dir)
	if err != nil {
		return nil, fmt.Errorf("open log spool %s: %w", dir, err)
	}
	s.segments, s.pos, s.cut = segments, pos, cut
	if len(segments) == 0 {
		s.pos = Position{Head: Start()}
		first, err := createSegment(dir, s.pos)
		if err != nil {
			return nil, fmt.Errorf("make log spool: %w", err)
		}
		s.segments = []*segment{first}
	}
	for _, seg := range s.segments {
		s.used += seg.size
	}
	return s, nil
}

// Position is where the spool stands.
func (s *Spool) Position() Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pos
}

// Append stores records, and that source has been read up to offset, both or
// neither. The offset of Agent is ignored. If lines were dropped before, the
// record that says so comes first. ErrFull means that nothing was stored.
func (s *Spool) Append(records []Record, source Source, offset int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pos.Final {
		return errors.New("append to a finished log spool")
	}
	next := s.pos
	if next.Dropped > 0 {
		records = append([]Record{lostRecord(next.Dropped)}, records...)
		next.Dropped = 0
	}
	if at := next.offset(source); at != nil {
		*at = offset
	}
	return s.write(next, records, s.maxBytes)
}

// Remark stores a line of the agent itself.
func (s *Spool) Remark(text string, at time.Time) error {
	return s.Append(split([]byte(text), Agent, at, true), Agent, 0)
}

// Drop stores that source has been read up to offset, and that lines of it were
// not kept.
func (s *Spool) Drop(lines int64, source Source, offset int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.pos
	next.Dropped += lines
	if at := next.offset(source); at != nil {
		*at = offset
	}
	return s.write(next, nil, s.maxBytes+segmentBytes)
}

// NoteLateRedaction stores that a secret became known only now: lines that were
// stored before may show it.
func (s *Spool) NoteLateRedaction() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pos.LateRedaction || s.pos.Final {
		return nil
	}
	next := s.pos
	next.LateRedaction = true
	return s.write(next, nil, s.maxBytes+segmentBytes)
}

// Finish stores that no more lines come; safe to repeat. Lines that were
// dropped at the end are said in a last record.
func (s *Spool) Finish() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pos.Final {
		return nil
	}
	next := s.pos
	next.Final = true
	var records []Record
	if next.Dropped > 0 {
		records = append(records, lostRecord(next.Dropped))
		next.Dropped = 0
	}
	// The end is a few bytes and must not wait for room.
	if err := s.write(next, records, s.maxBytes+2*segmentBytes); err != nil {
		return err
	}
	return s.sync()
}

func lostRecord(lines int64) Record {
	return Record{Time: time.Now().UTC(), Source: Agent, Lost: true, Text: fmt.Sprintf("%d lines dropped: spool full", lines)}
}

// write stores one block if the spool then holds at most room bytes.
func (s *Spool) write(next Position, records []Record, room int64) error {
	var frames []byte
	for _, r := range records {
		frames = AppendFrame(frames, r)
	}
	return s.store(next, frames, len(records), room)
}

// store is write for lines that are frames already.
func (s *Spool) store(next Position, frames []byte, count int, room int64) error {
	b := block{after: next, count: count, frames: frames}
	if len(b.frames) > maxBlock {
		return errTooBig
	}
	if s.used+blockHeader+int64(len(b.frames)) > room {
		return ErrFull
	}
	head, _, err := s.pos.Head.Advance(b.frames, 0)
	if err != nil {
		return fmt.Errorf("store log lines: %w", err)
	}
	b.after.Head = head
	if s.removed {
		s.pos = b.after
		return nil
	}
	active := s.segments[len(s.segments)-1]
	if active.size+int64(len(b.frames)) > segmentBytes && active.size > blockHeader {
		if active, err = s.rotate(); err != nil {
			return diskError(err)
		}
	}
	before := active.size
	if err := active.append(b); err != nil {
		return diskError(err)
	}
	s.used += active.size - before
	s.pos = b.after
	s.signal()
	return nil
}

// rotate ends the active segment and begins a new one.
func (s *Spool) rotate() (*segment, error) {
	if err := s.segments[len(s.segments)-1].sync(); err != nil {
		return nil, err
	}
	seg, err := createSegment(s.dir, s.pos)
	if err != nil {
		return nil, err
	}
	s.segments = append(s.segments, seg)
	s.used += seg.size
	return seg, nil
}

func diskError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return fmt.Errorf("store log lines: %w", err)
}

// sync makes everything that was stored durable.
func (s *Spool) sync() error {
	if s.removed {
		return nil
	}
	if err := s.segments[len(s.segments)-1].sync(); err != nil {
		return fmt.Errorf("sync log spool: %w", err)
	}
	return nil
}

// ack frees what is behind next, the number of the first line that the other
// side does not have.
func (s *Spool) ack(next int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	active := s.segments[len(s.segments)-1]
	if next >= s.pos.Head.NextSeq && active.size > segmentBytes/2 {
		if _, err := s.rotate(); err != nil && !errors.Is(err, syscall.ENOSPC) {
			return diskError(err)
		}
	}
	freed := false
	for len(s.segments) > 1 && s.segments[1].first.NextSeq <= next {
		s.used -= s.segments[0].size
		if err := s.segments[0].remove(); err != nil {
			return fmt.Errorf("free log spool: %w", err)
		}
		s.segments, freed = s.segments[1:], true
	}
	if freed {
		s.signal()
	}
	return nil
}

// cursor is a place in a spool: behind everything that was read so far.
type cursor struct {
	head    Head
	seg     *segment
	off     int64
	pending []byte // frames of the block before off that were not read yet
}

// seek returns the cursor before line next; 0 means the oldest line there is.
func (s *Spool) seek(next int64) (cursor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest := s.segments[0].first.NextSeq
	if next == 0 {
		next = oldest
	}
	if next < oldest || next > s.pos.Head.NextSeq {
		return cursor{}, &OutOfRangeError{Wanted: next, Oldest: oldest, Next: s.pos.Head.NextSeq}
	}
	seg := s.segments[0]
	for _, candidate := range s.segments[1:] {
		if candidate.first.NextSeq <= next {
			seg = candidate
		}
	}
	at := cursor{head: seg.first, seg: seg}
	for {
		b, after, err := readBlock(seg.file, at.off, seg.size)
		if errors.Is(err, io.EOF) {
			return at, nil
		}
		if err != nil {
			return cursor{}, fmt.Errorf("read log spool %s: %w", s.dir, err)
		}
		if b.after.Head.NextSeq > next {
			at.head, at.pending, err = at.head.Advance(b.frames, next)
			at.off = after
			return at, err
		}
		at.head, at.off = b.after.Head, after
	}
}

// read returns the next batch behind the cursor and the cursor behind it. Its
// lines are on the disk to stay when it returns. An empty batch means that
// there is nothing more for now.
func (s *Spool) read(at cursor) (Batch, cursor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.segments, at.seg) {
		// Freed since, because its last line was acknowledged; behind the
		// cursor it had no more lines.
		at.seg, at.off = s.segments[0], 0
	}
	batch := Batch{FirstSeq: at.head.NextSeq, PrevHash: at.head.Hash, Frames: at.pending}
	if len(at.pending) > 0 {
		head, _, err := at.head.Advance(at.pending, 0)
		if err != nil {
			return Batch{}, at, err
		}
		at.head, at.pending = head, nil
	}
	for {
		b, after, err := readBlock(at.seg.file, at.off, at.seg.size)
		if errors.Is(err, io.EOF) {
			following := s.following(at.seg)
			if following == nil {
				break
			}
			at.seg, at.off = following, 0
			continue
		}
		if err != nil {
			return Batch{}, at, fmt.Errorf("read log spool %s: %w", s.dir, err)
		}
		if len(batch.Frames)+len(b.frames) > MaxBatch {
			break
		}
		batch.Frames = append(batch.Frames, b.frames...)
		at.head, at.off = b.after.Head, after
	}
	return batch, at, s.sync()
}

// following is the segment behind seg, or nil.
func (s *Spool) following(seg *segment) *segment {
	if i := slices.Index(s.segments, seg) + 1; i < len(s.segments) {
		return s.segments[i]
	}
	return nil
}

// changes returns a channel that is closed at the next change.
func (s *Spool) changes() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *Spool) signal() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Close closes the files and keeps what is on disk.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.sync()
	closeAll(s.segments)
	return err
}

// Remove closes the spool and deletes it from the disk: its stream is finished,
// or nobody takes its lines any more. What somebody still writes is dropped, and
// that is no error: an engine whose lease is lost keeps running for a while.
func (s *Spool) Remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removed, s.used = true, 0
	closeAll(s.segments)
	return os.RemoveAll(s.dir)
}

// OutOfRangeError says that the other side wants a line that the spool no
// longer has, or does not have yet.
type OutOfRangeError struct {
	Wanted, Oldest, Next int64
}

func (e *OutOfRangeError) Error() string {
	return fmt.Sprintf("line %d is wanted, the log spool has %d to %d", e.Wanted, e.Oldest, e.Next-1)
}
