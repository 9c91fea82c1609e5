package follow

import (
	"fmt"
	"io"
	"strings"

	"github.com/berth-dev/berth/pkg/visible"
)

// Screen shows lines that stay, and on a terminal below them a block that is
// redrawn in place. A line stays one line, whatever is in it. W makes the rest
// visible (package visible).
type Screen struct {
	W        io.Writer
	Terminal bool
	Color    bool
	// Columns is the width of the terminal: longer lines of the block are cut,
	// as they could not be drawn over.
	Columns int

	drawn int // lines of the block
}

// Print adds lines that stay.
func (s *Screen) Print(lines ...string) {
	s.Clear()
	for _, line := range lines {
		fmt.Fprintln(s.W, visible.Row(line))
	}
}

// Draw replaces the block. Without a terminal there is none.
func (s *Screen) Draw(lines []string) {
	if !s.Terminal {
		return
	}
	var out strings.Builder
	out.WriteString(s.up())
	for _, line := range lines {
		out.WriteString(cut(visible.Row(line), s.Columns) + "\n")
	}
	s.drawn = len(lines)
	_, _ = io.WriteString(s.W, out.String())
}

// Clear removes the block.
func (s *Screen) Clear() {
	_, _ = io.WriteString(s.W, s.up())
	s.drawn = 0
}

// up moves to the first line of the block and erases it.
func (s *Screen) up() string {
	if s.drawn == 0 {
		return ""
	}
	return visible.Own(fmt.Sprintf("\x1b[%dA\x1b[J", s.drawn))
}

// cut shortens a line to a width. Colours take no room and stay.
func cut(line string, width int) string {
	if width <= 0 || Width(line) <= width {
		return line
	}
	var out strings.Builder
	room, escape := width, false
	for _, r := range line {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		case room == 1:
			room = 0
			out.WriteString("…")
			continue
		case room == 0:
			continue
		default:
			room--
		}
		out.WriteRune(r)
	}
	return out.String()
}

// Width is how many characters of a line take room: those of colours do not.
func Width(line string) int {
	n, escape := 0, false
	for _, r := range line {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		default:
			n++
		}
	}
	return n
}
