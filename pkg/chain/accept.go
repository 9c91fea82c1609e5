package chain

import (
	"bytes"
	"fmt"
	"io"
	"slices"
)

// Acceptance is the customer's decision to continue a chain that does not lead
// to a head which somebody kept. It never makes the chain whole: every reader
// of the chain sees it.
type Acceptance struct {
	// Reason is the customer's.
	Reason string `json:"reason"`
	// Problem recognises what was shown before the decision.
	Problem string `json:"problem"`
	// Abandoned are the heads that this chain does not lead to.
	Abandoned []Head `json:"abandoned,omitempty"`
	// Restored is how many records were taken from a copy, just before.
	Restored int64 `json:"restored,omitempty"`
}

// Decision is an Acceptance with its place in a chain.
type Decision struct {
	Seq int64 `json:"seq"`
	Acceptance
}

// Lost reports how many records after those before the decision led to an
// abandoned head; 0 when all abandoned heads fork off earlier.
func (d Decision) Lost() int64 {
	return max(0, d.last()-d.Seq+1)
}

// last is the highest record that a decision abandons.
func (d Decision) last() (seq int64) {
	for _, h := range d.Abandoned {
		seq = max(seq, h.Seq)
	}
	return seq
}

// Decisions are the customer's, oldest first.
func (w *Writer) Decisions() []Decision {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.accepted)
}

// At returns the head that the chain had when record seq was its last; false
// when it is shorter.
func (w *Writer) At(seq int64) (Head, bool) {
	if seq == 0 {
		return Head{}, true
	}
	lines, err := w.ReadFrom(seq, 1)
	if err != nil || len(lines) == 0 {
		return Head{}, false
	}
	return lines[0].Head, true
}

// HeadOf is the head of a chain whose last line is raw.
func HeadOf(raw []byte) (Head, error) {
	rec, err := ParseRecord(raw)
	if err != nil {
		return Head{}, err
	}
	return Head{Seq: rec.Seq, Hash: hashOf(raw)}, nil
}

// Adopt cuts the chain after record after and appends lines, byte for byte,
// and with decision, which is signed by this writer and so vouches by its hash for
// all before it. Keep what is cut off first. A crash in between leaves a shorter
// chain, on which the same Adopt can be done again.
func (w *Writer) Adopt(after int64, lines []Line, decision Record) error {
	head, found := w.At(after)
	if !found {
		return fmt.Errorf("%w: the chain has no record %d", ErrInvalid, after)
	}
	var text bytes.Buffer
	for _, line := range lines {
		rec, err := ParseRecord(line.Raw)
		switch {
		case err != nil:
			return fmt.Errorf("record %d: %w", head.Seq+1, err)
		case rec.Chain != w.signer.Chain || rec.Seq != head.Seq+1 || rec.Prev != head.Hash:
			return fmt.Errorf("%w: record %d does not follow the one before", ErrInvalid, head.Seq+1)
		}
		head = Head{Seq: rec.Seq, Hash: hashOf(line.Raw)}
		text.Write(line.Raw)
		text.WriteByte('\n')
	}
	last, err := Next(head, decision, w.signer)
	if err != nil {
		return err
	}
	text.Write(append(last.Raw, '\n'))
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.heal(); err != nil {
		return err
	}
	size := w.size
	if after < w.head.Seq {
		size = w.offsets[after]
	}
	if err := w.file.Truncate(size); err != nil {
		return fmt.Errorf("cut chain: %w", err)
	}
	// From here on the picture is read from the file again, whatever happens.
	_, err = w.file.WriteAt(text.Bytes(), size)
	if err == nil {
		err = w.file.Sync()
	}
	if again := w.reload(); err == nil {
		err = again
	}
	if err != nil {
		return fmt.Errorf("go on with the copy of the chain: %w", err)
	}
	return nil
}

// reload reads the whole file again; mu is held.
func (w *Writer) reload() error {
	w.size, w.offsets, w.head, w.open, w.accepted = 0, nil, Head{}, map[int64]Record{}, nil
	w.named, w.vendor = nil, nil
	if _, err := w.file.Seek(0, io.SeekStart); err != nil {
		w.broken = err
		return err
	}
	err := w.load()
	if err != nil {
		w.broken = err
	}
	return err
}
