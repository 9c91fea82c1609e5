package main

import (
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"sync"
)

// own is whose lines the loop's are.
const own = "make dev"

// screen shows lines of many, each with the name of whose it is.
type screen struct {
	mu       sync.Mutex
	w        io.Writer
	coloured bool
}

// newScreen colours names on a terminal, unless NO_COLOR is set.
func newScreen(w *os.File) *screen {
	info, err := w.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &screen{w: w, coloured: terminal && os.Getenv("NO_COLOR") == ""}
}

// colours of names: of the sixteen of terminals those that are read on black and on
// white, without red, which is for errors.
var colours = []int{32, 33, 34, 35, 36, 92, 94, 95, 96}

// line shows one line. Many may call it.
func (s *screen) line(name, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	label := fmt.Sprintf("%-14s│", name)
	if s.coloured {
		style := "1" // bold
		if name != own {
			hash := fnv.New32a()
			_, _ = hash.Write([]byte(name)) // cannot fail
			style = fmt.Sprint(colours[hash.Sum32()%uint32(len(colours))])
		}
		label = "\x1b[" + style + "m" + label + "\x1b[0m"
	}
	_, _ = fmt.Fprintf(s.w, "%s %s\n", label, text)
}
