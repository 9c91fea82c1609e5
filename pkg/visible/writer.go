package visible

import (
	"bytes"
	"crypto/rand"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// ownMark stands for ESC in what the program itself sends to a terminal. It is
// random, so no text that comes from elsewhere can have it.
var ownMark = "\x1b" + rand.Text()

// Own marks a terminal sequence as the program's own, such as a colour: a
// Writer of this process lets it pass. Give it constants of the program, never
// anything that came from elsewhere.
func Own(sequence string) string { return strings.ReplaceAll(sequence, "\x1b", ownMark) }

// Row is Line for a line that the program has put together: what Own marked and
// tabs pass, and the bracket ⟨ stays, as parts of it may be visible already.
func Row(s string) string {
	return ownKept(s, func(r rune) bool { return r == '\n' || Hidden(r) })
}

// Writer makes everything visible that is written through it. Line feeds, tabs
// and what Own marked pass. Safe for concurrent use.
type Writer struct {
	mu   sync.Mutex
	w    io.Writer
	held []byte // the beginning of a character or mark, whose end is to come
}

// NewWriter writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Unwrap returns what is written to, for questions about it, such as whether it
// is a terminal, and for output that is meant to be raw.
func (w *Writer) Unwrap() io.Writer { return w.w }

// Write implements io.Writer. A character that the end of p cuts in two is
// written together with its end.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := slices.Concat(w.held, p)
	whole := len(text) - unfinished(text)
	if err := w.show(text[:whole]); err != nil {
		w.held = nil
		return 0, err
	}
	w.held = bytes.Clone(text[whole:])
	return len(p), nil
}

// Flush writes what is still held: no end of it came.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := w.held
	w.held = nil
	return w.show(held)
}

func (w *Writer) show(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	_, err := io.WriteString(w.w, strings.ReplaceAll(ownKept(string(text), Hidden), ownMark, "\x1b"))
	return err
}

// ownKept is escape for all but own marks.
func ownKept(text string, show func(rune) bool) string {
	parts := strings.Split(text, ownMark)
	for i, part := range parts {
		parts[i] = escape(part, show)
	}
	return strings.Join(parts, ownMark)
}

// unfinished is how many bytes at the end of text may be the beginning of a
// character or of an own mark.
func unfinished(text []byte) int {
	for n := min(len(text), len(ownMark)-1); n > 0; n-- {
		if strings.HasPrefix(ownMark, string(text[len(text)-n:])) {
			return n
		}
	}
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return n
			}
			break
		}
	}
	return 0
}
