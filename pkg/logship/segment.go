package logship

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/pkg/durable"
)

const segmentSuffix = ".seg"

// segment is one append-only file of blocks. Its first block has no frames and
// carries the position at its beginning, so that older segments can go.
type segment struct {
	file *os.File
	// first is the head before the segment's first line.
	first Head
	size  int64
	dirty bool // written since the last sync
	cut   bool // openSegment cut something off
}

// createSegment makes a segment that begins at p, and syncs it and its name:
// the segments before it may be removed afterwards.
func createSegment(dir string, p Position) (_ *segment, err error) {
	// Two segments have the same first line when the older one has no lines.
	var path string
	for n := 0; ; n++ {
		path = filepath.Join(dir, fmt.Sprintf("%020d-%06d%s", p.Head.NextSeq, n, segmentSuffix))
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(path)
		}
	}()
	s := &segment{file: file, first: p.Head}
	if err := s.append(block{after: p}); err != nil {
		return nil, err
	}
	if err := s.sync(); err != nil {
		return nil, err
	}
	return s, durable.SyncDir(dir)
}

// openSegments opens the segments of dir, oldest first, and returns the
// position after the last whole block. What a killed writer left of a block is
// cut off; cut says so. It returns no segments for a directory without any.
func openSegments(dir string) (segments []*segment, last Position, cut bool, err error) {
	defer func() {
		if err != nil {
			closeAll(segments)
			segments = nil
		}
	}()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, Position{}, false, err
	}
	for _, entry := range entries { // sorted by name, which is by number
		if !strings.HasSuffix(entry.Name(), segmentSuffix) {
			continue
		}
		s, after, err := openSegment(filepath.Join(dir, entry.Name()))
		if err != nil {
			return segments, Position{}, cut, err
		}
		if s == nil {
			cut = true
			continue
		}
		cut = cut || s.cut
		segments = append(segments, s)
		if len(segments) > 1 && s.first != last.Head {
			return segments, Position{}, cut, fmt.Errorf("segment %s does not continue the one before it", entry.Name())
		}
		last = after
	}
	return segments, last, cut, nil
}

// openSegment returns nil for a segment whose writer was killed before its
// first block was whole, and removes it.
func openSegment(path string) (*segment, Position, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, Position{}, err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, Position{}, err
	}
	var (
		s    = &segment{file: file}
		last Position
	)
	for {
		b, next, err := readBlock(file, s.size, info.Size())
		torn := errors.Is(err, errTorn)
		switch {
		case torn && s.size == 0 && info.Size() > blockHeader:
			// The first block was on disk before anything else was written.
			_ = file.Close()
			return nil, Position{}, fmt.Errorf("segment %s is damaged at its start", filepath.Base(path))
		case torn && info.Size()-s.size > blockHeader+maxBlock:
			_ = file.Close()
			return nil, Position{}, fmt.Errorf("segment %s is damaged at byte %d, before its last block", filepath.Base(path), s.size)
		case (torn || errors.Is(err, io.EOF)) && s.size == 0:
			_ = file.Close()
			return nil, Position{}, os.Remove(path)
		case torn:
			s.cut = true
			return s, last, file.Truncate(s.size)
		case errors.Is(err, io.EOF):
			return s, last, nil
		case err != nil:
			_ = file.Close()
			return nil, Position{}, err
		}
		if s.size == 0 {
			s.first = b.after.Head
		}
		s.size, last = next, b.after
	}
}

// append writes one block with one call; after an error the file is as before.
func (s *segment) append(b block) error {
	raw := b.append(make([]byte, 0, blockHeader+len(b.frames)))
	if _, err := s.file.WriteAt(raw, s.size); err != nil {
		return errors.Join(err, s.file.Truncate(s.size))
	}
	s.size += int64(len(raw))
	s.dirty = true
	return nil
}

func (s *segment) sync() error {
	if !s.dirty {
		return nil
	}
	if err := s.file.Sync(); err != nil {
		return err
	}
	s.dirty = false
	return nil
}

func (s *segment) remove() error {
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}

func closeAll(segments []*segment) {
	for _, s := range segments {
		_ = s.file.Close()
	}
}
