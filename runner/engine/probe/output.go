package probe

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/berth-dev/berth/pkg/jobspec"
)

const (
	// keptOutput is how much of a command's end is kept, in bytes.
	keptOutput = 4 << 10
	// maxShown is the longest line that is shown, in bytes. A longer one is left out, not
	// cut: in a part of it no secret would be recognised.
	maxShown = 120
	// maxSaid is the longest line that a probe says, in bytes: package action leaves out what
	// is longer than 300.
	maxSaid = 290
)

// tail keeps the end of what is written. It is safe for concurrent use.
type tail struct {
	mu   sync.Mutex
	end  []byte
	size int64
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.size += int64(len(p))
	t.end = append(t.end, p[max(0, len(p)-keptOutput):]...)
	t.end = append([]byte(nil), t.end[max(0, len(t.end)-keptOutput):]...)
	return len(p), nil
}

// last is the last line, "" when nothing was written.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(t.end))
	line := oneLine(text[strings.LastIndexByte(text, '\n')+1:])
	if len(line) > maxShown {
		return fmt.Sprintf("(a line of more than %d bytes, not shown, of %d bytes of output)", maxShown, t.size)
	}
	return line
}

// oneLine is text for one line of a log, without what a terminal would act on.
func oneLine(text string) string {
	clean := strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r < ' ' && r != '\t' && r != '\n' || r == 0x7f {
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(clean), " ")
}

// short is what Kubernetes says, as one line that package action passes on.
func short(text string) string { return jobspec.CutText(oneLine(text), maxSaid) }

// maxID is the longest number of a process.
const maxID = 10

// idLine takes the number on the first line away and passes on the rest.
type idLine struct {
	rest io.Writer

	mu   sync.Mutex
	head []byte
	id   string
	done bool
}

func (l *idLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return l.rest.Write(p)
	}
	l.head = append(l.head, p...)
	line, rest, whole := bytes.Cut(l.head, []byte("\n"))
	if !whole && len(l.head) <= maxID {
		return len(p), nil
	}
	l.done = true
	if isNumber(line) {
		l.id = string(line)
	} else {
		rest = l.head // not what the lead says
	}
	_, err := l.rest.Write(rest)
	l.head = nil
	return len(p), err
}

// get is the number, "" while there is none.
func (l *idLine) get() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id
}

func isNumber(text []byte) bool {
	return len(text) > 0 && len(text) <= maxID && len(bytes.Trim(text, "0123456789")) == 0
}
