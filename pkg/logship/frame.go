package logship

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// MaxText is the longest text of one record, in bytes; a longer line is
	// split.
	MaxText = 64 << 10
	// MaxBatch is the most bytes of frames that one append takes.
	MaxBatch = 1 << 20

	frameHeader = 4 + 8 + 1 + 1
	// MaxFrame is the size of a frame with the longest text.
	MaxFrame = frameHeader + MaxText
)

// Source says where a line came from.
type Source uint8

// The sources. Their numbers are part of the frame and never change.
const (
	Stdout Source = 1
	Stderr Source = 2
	Agent  Source = 3 // a remark of the runner itself
)

// String is the name of the source as the API shows it.
func (s Source) String() string {
	switch s {
	case Stdout:
		return "stdout"
	case Stderr:
		return "stderr"
	case Agent:
		return "agent"
	}
	return "source " + strconv.Itoa(int(s))
}

// The flags of a frame.
const (
	flagContinues = 1 << iota
	flagLost
)

// A Record is one line of a stream. Its number is its place in the stream and
// not part of it.
type Record struct {
	// Time is when the agent read the line; the frame keeps nanoseconds.
	Time   time.Time
	Source Source
	// Text has no line end, and is valid UTF-8 of at most MaxText bytes.
	Text string
	// Continues says that the line continues in the next record.
	Continues bool
	// Lost says that the record stands for lines that were dropped; how many,
	// is the number that its text starts with.
	Lost bool
}

// LostLines is the number of lines that a record with Lost stands for.
func (r Record) LostLines() int64 {
	if !r.Lost {
		return 0
	}
	count, _, _ := strings.Cut(r.Text, " ")
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil || n < 1 {
		return 1 // lost is lost, even when the count is unreadable
	}
	return n
}

// ErrFrame is the cause of all errors about bytes that are not frames.
var ErrFrame = errors.New("malformed frame")

// AppendFrame appends the frame of r to b. The frame is what is hashed, sent
// and stored: nobody ever encodes a record a second time.
//
//	4 length of text · 8 unix nanoseconds · 1 source · 1 flags · text
func AppendFrame(b []byte, r Record) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Text)))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Time.UnixNano()))
	var flags byte
	if r.Continues {
		flags |= flagContinues
	}
	if r.Lost {
		flags |= flagLost
	}
	b = append(b, byte(r.Source), flags)
	return append(b, r.Text...)
}

// CutFrame splits the first frame off b and checks its form.
func CutFrame(b []byte) (frame, rest []byte, err error) {
	if len(b) < frameHeader {
		return nil, nil, fmt.Errorf("%w: %d bytes are less than a header", ErrFrame, len(b))
	}
	size := binary.BigEndian.Uint32(b)
	switch {
	case size > MaxText:
		return nil, nil, fmt.Errorf("%w: text of %d bytes is longer than %d", ErrFrame, size, MaxText)
	case int(size) > len(b)-frameHeader:
		return nil, nil, fmt.Errorf("%w: text of %d bytes is cut off", ErrFrame, size)
	case b[12] < byte(Stdout) || b[12] > byte(Agent):
		return nil, nil, fmt.Errorf("%w: unknown source %d", ErrFrame, b[12])
	case b[13]&^(flagContinues|flagLost) != 0:
		return nil, nil, fmt.Errorf("%w: unknown flags %#x", ErrFrame, b[13])
	}
	n := frameHeader + int(size)
	return b[:n:n], b[n:], nil
}

// DecodeFrame reads a frame that CutFrame has returned.
func DecodeFrame(frame []byte) Record {
	return Record{
		Time:      time.Unix(0, int64(binary.BigEndian.Uint64(frame[4:]))).UTC(),
		Source:    Source(frame[12]),
		Continues: frame[13]&flagContinues != 0,
		Lost:      frame[13]&flagLost != 0,
		Text:      string(frame[frameHeader:]),
	}
}

// IsLost reports, without decoding it, whether a frame stands for lost lines.
func IsLost(frame []byte) bool { return frame[13]&flagLost != 0 }
