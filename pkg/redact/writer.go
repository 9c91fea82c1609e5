package redact

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// Writer redacts a stream. However the stream is cut into writes, no secret of
// its Set gets through. It holds back only bytes that begin a form of a
// secret, so a complete line is passed on at once unless it ends in such a
// beginning. Safe for concurrent use.
type Writer struct {
	set *Set

	mu   sync.Mutex
	w    io.Writer
	scan scanner
	out  []byte // reused
	err  error  // the first error of w; all that follows fails with it
}

// NewWriter returns a Writer that passes on to w what may be seen.
func NewWriter(w io.Writer, s *Set) *Writer {
	return &Writer{set: s, w: w, scan: scanner{auto: s.automaton()}}
}

// Write takes the next bytes of the stream. It reports all of p as written
// although some may be held back; after an error of the writer below, the
// stream is at an end.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	// Before the set is read: a secret that is added from here on either is in
	// what automaton returns, or is reported as late.
	w.set.started.Store(true)
	w.out = w.scan.swap(w.out[:0], w.set.automaton())
	w.out = w.scan.feed(w.out, p)
	if err := w.pass(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// FlushLine lets go of complete lines that are held back because their end
// could begin a secret of several lines. Call it when the stream rests. The
// price is that such a secret is then found only by its single lines, those of
// at least MinLen bytes. An unfinished line stays held.
func (w *Writer) FlushLine() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	end := bytes.LastIndexByte(w.scan.held, '\n')
	if w.err != nil || end < 0 {
		return w.err
	}
	w.out = w.scan.swap(w.out[:0], w.set.automaton())
	if end = bytes.LastIndexByte(w.scan.held, '\n'); end >= 0 {
		w.out = w.scan.flushTo(w.out, end+1)
	}
	return w.pass()
}

// Close lets go of what is held; no more bytes follow. It does not close the
// writer below. A second call does nothing more.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if errors.Is(w.err, io.ErrClosedPipe) {
		return nil
	}
	if w.err != nil {
		return w.err
	}
	w.out = w.scan.swap(w.out[:0], w.set.automaton())
	w.out = w.scan.flush(w.out)
	if err := w.pass(); err != nil {
		return err
	}
	w.err = io.ErrClosedPipe
	return nil
}

// pass writes what was let go.
func (w *Writer) pass() error {
	if len(w.out) == 0 {
		return nil
	}
	_, w.err = w.w.Write(w.out)
	return w.err
}
