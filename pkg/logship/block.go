package logship

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Position is everything that a spool must know to continue after a restart.
// Every block on disk carries the position after it, so the last whole block is
// the state, and there is no second file that could disagree.
type Position struct {
	// Head is the number of the next line and the hash before it.
	Head Head
	// Stdout and Stderr are how far the files of the engine were read, in bytes.
	Stdout, Stderr int64
	// Dropped is how many lines were dropped since the last record.
	Dropped int64
	// Final says that no more lines come.
	Final bool
	// LateRedaction says that a secret became known when lines had passed.
	LateRedaction bool
	// Astray says that the numbers of the lines are not those of the stream yet:
	// see ReplaceSpool.
	Astray bool
}

// offset is the place where the position keeps how far a source was read; nil
// for sources that are not read from a file.
func (p *Position) offset(s Source) *int64 {
	switch s {
	case Stdout:
		return &p.Stdout
	case Stderr:
		return &p.Stderr
	}
	return nil
}

// A block on disk:
//
//	4 CRC-32C of everything behind it
//	4 bytes of frames · 4 number of frames
//	8 next number · 32 hash · 8 stdout · 8 stderr · 8 dropped · 1 flags
//	n frames
const (
	blockHeader = 4 + 4 + 4 + 8 + 32 + 8 + 8 + 8 + 1
	// maxBlock bounds what a reader allocates for a damaged length.
	maxBlock = MaxBatch
)

// The flags of a block.
const (
	flagFinal = 1 << iota
	flagLate
	flagAstray
)

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// errTorn says that a segment ends inside a block: the writer was killed.
var errTorn = errors.New("torn block")

// block is a block in memory.
type block struct {
	after  Position
	count  int
	frames []byte
}

func (b block) append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(b.frames)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(b.count))
	dst = binary.BigEndian.AppendUint64(dst, uint64(b.after.Head.NextSeq))
	dst = append(dst, b.after.Head.Hash[:]...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(b.after.Stdout))
	dst = binary.BigEndian.AppendUint64(dst, uint64(b.after.Stderr))
	dst = binary.BigEndian.AppendUint64(dst, uint64(b.after.Dropped))
	var flags byte
	if b.after.Final {
		flags |= flagFinal
	}
	if b.after.LateRedaction {
		flags |= flagLate
	}
	if b.after.Astray {
		flags |= flagAstray
	}
	dst = append(dst, flags)
	dst = append(dst, b.frames...)
	binary.BigEndian.PutUint32(dst[start:], crc32.Checksum(dst[start+4:], crcTable))
	return dst
}

// readBlock reads the block at off and returns where the next one starts. At
// the end of the segment it returns io.EOF, inside a torn or damaged block
// errTorn.
func readBlock(r io.ReaderAt, off, size int64) (block, int64, error) {
	if off == size {
		return block{}, off, io.EOF
	}
	if size-off < blockHeader {
		return block{}, off, errTorn
	}
	head := make([]byte, blockHeader)
	if _, err := r.ReadAt(head, off); err != nil {
		return block{}, off, fmt.Errorf("read block: %w", err)
	}
	n := int64(binary.BigEndian.Uint32(head[4:]))
	if n > maxBlock || n > size-off-blockHeader {
		return block{}, off, errTorn
	}
	frames := make([]byte, n)
	if _, err := r.ReadAt(frames, off+blockHeader); err != nil && n > 0 {
		return block{}, off, fmt.Errorf("read block: %w", err)
	}
	sum := crc32.Update(crc32.Checksum(head[4:], crcTable), crcTable, frames)
	if sum != binary.BigEndian.Uint32(head) {
		return block{}, off, errTorn
	}
	b := block{count: int(binary.BigEndian.Uint32(head[8:])), frames: frames}
	b.after.Head.NextSeq = int64(binary.BigEndian.Uint64(head[12:]))
	copy(b.after.Head.Hash[:], head[20:52])
	b.after.Stdout = int64(binary.BigEndian.Uint64(head[52:]))
	b.after.Stderr = int64(binary.BigEndian.Uint64(head[60:]))
	b.after.Dropped = int64(binary.BigEndian.Uint64(head[68:]))
	b.after.Final = head[76]&flagFinal != 0
	b.after.LateRedaction = head[76]&flagLate != 0
	b.after.Astray = head[76]&flagAstray != 0
	return b, off + blockHeader + n, nil
}
