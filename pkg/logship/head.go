package logship

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Hash is the running hash of a stream after some line: 32 zero bytes before
// the first line, then SHA-256(hash before ‖ frame) after each.
type Hash [sha256.Size]byte

// ParseHash reads what String writes.
func ParseHash(s string) (Hash, error) {
	var h Hash
	if len(s) != hex.EncodedLen(len(h)) {
		return Hash{}, fmt.Errorf("hash has %d characters instead of %d", len(s), hex.EncodedLen(len(h)))
	}
	if _, err := hex.Decode(h[:], []byte(s)); err != nil {
		return Hash{}, fmt.Errorf("hash is not hexadecimal: %w", err)
	}
	return h, nil
}

// String is the hash in lower-case hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Head is where a stream stands.
type Head struct {
	// NextSeq is the number of the next line; 1 when there is none yet.
	NextSeq int64
	// Hash is the running hash after line NextSeq-1.
	Hash Hash
}

// Start is the head of a stream without lines.
func Start() Head { return Head{NextSeq: 1} }

// Advance is the head after frames. With a limit, it stops at the line with
// that number (the head's NextSeq is then limit); rest is what it left.
func (h Head) Advance(frames []byte, limit int64) (after Head, rest []byte, err error) {
	digest := sha256.New()
	for len(frames) > 0 && (limit <= 0 || h.NextSeq < limit) {
		frame, tail, err := CutFrame(frames)
		if err != nil {
			return Head{}, nil, fmt.Errorf("line %d: %w", h.NextSeq, err)
		}
		digest.Reset()
		digest.Write(h.Hash[:])
		digest.Write(frame)
		digest.Sum(h.Hash[:0])
		h.NextSeq++
		frames = tail
	}
	return h, frames, nil
}

// A Batch is what is appended in one go: the frames of the lines from FirstSeq
// on, and the hash before the first.
type Batch struct {
	FirstSeq int64
	PrevHash Hash
	Frames   []byte
}

// Verdict says how a batch fits a stream.
type Verdict string

// The verdicts.
const (
	// Extends: Decision.New continues the stream.
	Extends Verdict = "extends"
	// Duplicate: the stream has all lines of the batch.
	Duplicate Verdict = "duplicate"
	// Gap: lines between the stream and the batch are missing.
	Gap Verdict = "gap"
	// Conflict: the stream has other lines under the same numbers.
	Conflict Verdict = "conflict"
	// Inside: the batch ends before the last line of the stream, so the head
	// cannot tell; it is a duplicate when the stream's head after line
	// Decision.After.NextSeq-1 is Decision.After, else a conflict.
	Inside Verdict = "inside"
)

// A Decision is what to do with a batch.
type Decision struct {
	Verdict Verdict
	// After is the head after the batch.
	After Head
	// New are the frames that are not stored yet; set when Verdict is Extends.
	New []byte
}

// Decide compares a batch with the head of its stream. No stored line is
// needed for that: the hash chain that starts at PrevHash reaches the head's
// hash only if PrevHash and every line up to there are the stored ones.
// The error is ErrFrame.
func (h Head) Decide(b Batch) (Decision, error) {
	at := Head{NextSeq: b.FirstSeq, Hash: b.PrevHash}
	meet, rest, err := at.Advance(b.Frames, h.NextSeq)
	if err != nil {
		return Decision{}, err
	}
	after, _, err := meet.Advance(rest, 0)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{After: after}
	switch {
	case b.FirstSeq > h.NextSeq:
		d.Verdict = Gap
	case meet.NextSeq < h.NextSeq:
		d.Verdict = Inside
	case meet.Hash != h.Hash:
		d.Verdict = Conflict
	case len(rest) == 0:
		d.Verdict = Duplicate
	default:
		d.Verdict, d.New = Extends, rest
	}
	return d, nil
}
