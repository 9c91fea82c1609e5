package chain

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/berth-dev/berth/pkg/durable"
)

// Errors of a Writer, for errors.Is.
var (
	ErrBusy    = errors.New("chain has another writer")
	ErrCorrupt = errors.New("chain file is corrupt")
	ErrBroken  = errors.New("chain writer failed earlier")
)

// Torn is the unfinished line that Open cut off the end of a file. Its Append
// never returned, so nothing was done on its strength.
type Torn struct {
	Offset int64 // where it began
	Bytes  []byte
}

// Writer appends to one chain file and reads it back. Safe for concurrent use.
type Writer struct {
	signer Signer
	torn   *Torn

	mu      sync.Mutex
	file    *os.File
	size    int64
	offsets []int64 // where record seq begins, at seq-1
	head    Head
	open    map[int64]Record // intents without outcome
	// accepted are the customer's decisions about what is missing.
	accepted []Decision
	named    *Keys // the last that a record names
	vendor   *VendorKeys
	broken   error
}

// Open opens the chain at path, or starts one there (mode 0600), and keeps
// every other writer out until Close. It reads the whole file and checks the
// hashes, and the last record's signature; a chain that does not add up, or is
// another one's, is ErrCorrupt and stays as it is. An unfinished last line, as
// a crash leaves it, is cut off: see Torn.
func Open(path string, s Signer) (_ *Writer, err error) {
	if s.Chain == "" || len(s.Key) != ed25519.PrivateKeySize {
		return nil, errors.New("open chain: signer needs a chain id and an Ed25519 key")
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open chain: %w", err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	if err := lock(f); err != nil {
		return nil, fmt.Errorf("open chain %s: %w", path, err)
	}
	w := &Writer{signer: s, file: f, open: map[int64]Record{}}
	if err := w.load(); err != nil {
		return nil, fmt.Errorf("open chain %s: %w", path, err)
	}
	if w.torn != nil {
		if err := f.Truncate(w.size); err != nil {
			return nil, fmt.Errorf("cut torn line: %w", err)
		}
	}
	if err := f.Sync(); err != nil {
		return nil, fmt.Errorf("open chain: %w", err)
	}
	return w, durable.SyncDir(filepath.Dir(path))
}

// Torn returns what Open cut off, or nil. Report it: it is the sign of a crash
// during an append.
func (w *Writer) Torn() *Torn { return w.torn }

// Append stores r as the next record and returns the new head once the record
// is on disk permanently. After an error nothing was recorded, so the effect
// must not be tried. ErrBroken says that an earlier write failed and could not
// be taken back until now; the next Append tries that again. An outcome must
// name an intent that has none yet.
func (w *Writer) Append(ctx context.Context, r Record) (Head, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return Head{}, err
	}
	if err := w.heal(); err != nil {
		return Head{}, err
	}
	if _, known := w.open[r.Intent]; r.Kind == Outcome && !known {
		return Head{}, fmt.Errorf("%w: record %d is not an intent without outcome", ErrInvalid, r.Intent)
	}
	line, err := Next(w.head, r, w.signer)
	if err != nil {
		return Head{}, err
	}
	if err := w.store(line); err != nil {
		return Head{}, fmt.Errorf("append to chain: %w", err)
	}
	r.Seq = line.Seq
	w.take(r, line.Head, int64(len(line.Raw))+1)
	return w.head, nil
}

// Named returns the keys that the chain named last, nil when it names none.
func (w *Writer) Named() *Keys {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.named
}

// Head returns the head of what is stored.
func (w *Writer) Head() Head {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.head
}

// SignedHead returns the head for others to keep.
func (w *Writer) SignedHead() SignedHead { return SignHead(w.Head(), w.signer) }

// OpenIntents returns the intents without outcome, oldest first: after a crash
// these are the effects of which nobody knows how they ended.
func (w *Writer) OpenIntents() []Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]Record, 0, len(w.open))
	for _, seq := range slices.Sorted(maps.Keys(w.open)) {
		out = append(out, w.open[seq])
	}
	return out
}

// ReadFrom returns up to limit stored lines, from record seq on, as they are
// on disk. None is not an error.
func (w *Writer) ReadFrom(seq int64, limit int) ([]Line, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var lines []Line
	for seq = max(seq, 1); seq <= w.head.Seq && len(lines) < limit; seq++ {
		end := w.size
		if seq < w.head.Seq {
			end = w.offsets[seq]
		}
		raw := make([]byte, end-w.offsets[seq-1]-1) // without the line feed
		if _, err := w.file.ReadAt(raw, w.offsets[seq-1]); err != nil {
			return nil, fmt.Errorf("read chain record %d: %w", seq, err)
		}
		lines = append(lines, Line{Head: Head{Seq: seq, Hash: hashOf(raw)}, Raw: raw})
	}
	return lines, nil
}

// Close lets another writer in. A second call returns an error.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = os.ErrClosed
	unlock(w.file)
	return w.file.Close()
}

// store writes and syncs one line. A failed write is taken back; after a
// failed sync nobody knows what is on disk, so nothing is written before heal.
func (w *Writer) store(line Line) error {
	if _, err := w.file.WriteAt(append(bytes.Clone(line.Raw), '\n'), w.size); err != nil {
		if undo := w.file.Truncate(w.size); undo != nil {
			w.broken = undo
		}
		return err
	}
	if err := w.file.Sync(); err != nil {
		w.broken = err
		return err
	}
	return nil
}

// heal makes sure after a failed write that the file ends with the last record
// whose Append returned: every byte up to there was synced before. Once that is
// so again, there is nothing that the writer does not know.
func (w *Writer) heal() error {
	if w.broken == nil {
		return nil
	}
	if !errors.Is(w.broken, os.ErrClosed) {
		err := w.file.Truncate(w.size)
		if err == nil {
			err = w.file.Sync()
		}
		if err == nil {
			w.broken = nil
			return nil
		}
		w.broken = err
	}
	return fmt.Errorf("%w: %w", ErrBroken, w.broken)
}

// take moves the writer's picture on by one stored record.
func (w *Writer) take(r Record, head Head, bytes int64) {
	if r.Keys != nil {
		w.named = r.Keys
	}
	if r.VendorKeys != nil {
		w.vendor = r.VendorKeys
	}
	w.offsets = append(w.offsets, w.size)
	w.size += bytes
	w.head = head
	if r.Accepted != nil {
		w.accepted = append(w.accepted, Decision{Seq: head.Seq, Acceptance: *r.Accepted})
	}
	switch r.Kind {
	case Intent:
		w.open[r.Seq] = r
	case Outcome:
		delete(w.open, r.Intent)
	}
}

// load reads the file from its start.
func (w *Writer) load() error {
	var last []byte
	r := bufio.NewReader(w.file)
	for {
		raw, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if len(raw) > 0 {
				w.torn = &Torn{Offset: w.size, Bytes: raw}
			}
			break
		}
		if err != nil {
			return err
		}
		line := raw[:len(raw)-1]
		rec, err := ParseRecord(line)
		if err != nil && bytes.IndexByte(line, 0) >= 0 {
			// A file system may lose the first block of a write and keep the
			// second: zeros, in the last line only.
			if _, more := r.Peek(1); errors.Is(more, io.EOF) {
				w.torn = &Torn{Offset: w.size, Bytes: raw}
				break
			}
		}
		switch {
		case err != nil:
			return fmt.Errorf("%w: record %d: %w", ErrCorrupt, w.head.Seq+1, err)
		case rec.Chain != w.signer.Chain:
			return fmt.Errorf("%w: record %d is of chain %.80q", ErrCorrupt, w.head.Seq+1, rec.Chain)
		case rec.Seq != w.head.Seq+1 || rec.Prev != w.head.Hash:
			return fmt.Errorf("%w: record %d does not follow the one before", ErrCorrupt, w.head.Seq+1)
		}
		w.take(rec, Head{Seq: rec.Seq, Hash: hashOf(line)}, int64(len(raw)))
		last = line
	}
	if last != nil && !checkSignature(last, w.signer.Key.Public().(ed25519.PublicKey)) {
		return fmt.Errorf("%w: record %d is not signed by this writer", ErrCorrupt, w.head.Seq)
	}
	return nil
}
