package follow

import (
	"strings"

	"github.com/berth-dev/berth/pkg/visible"
)

// hang is how much further than a line's beginning what follows a break is
// indented, in characters.
const hang = 2

// Fold prints lines that stay, each broken between words where the terminal ends.
// Without a terminal every line stays whole, for programs that look through it.
func (s *Screen) Fold(lines ...string) {
	for _, line := range lines {
		s.Print(fold(visible.Row(line), s.Columns)...)
	}
}

// fold breaks a line into such of at most width characters, between words or, in a
// word that is longer, wherever the width ends. All but the first are indented
// further than the line is. Colours take no room and stay. 0 leaves it whole.
func fold(line string, width int) []string {
	if width <= 0 || Width(line) <= width {
		return []string{line}
	}
	indent := min(len(line)-len(strings.TrimLeft(line, " "))+hang, width/2)
	var lines []string
	var out strings.Builder
	used, begin := 0, true // begin: nothing but an indent stands on the line
	next := func() {
		lines = append(lines, strings.TrimRight(out.String(), " "))
		out.Reset()
		out.WriteString(strings.Repeat(" ", indent))
		used, begin = indent, true
	}
	for gap, word := range words(line) {
		if !begin && used+gap+Width(word) > width {
			next()
			gap = 0
		}
		out.WriteString(strings.Repeat(" ", gap))
		used += gap
		for _, r := range pieces(word) {
			if n := Width(r); n > 0 && used+n > width {
				next()
			}
			out.WriteString(r)
			used += Width(r)
		}
		begin = begin && Width(word) == 0
	}
	return append(lines, out.String())
}

// words are the words of a line, each with how many spaces are before it.
func words(line string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		for line != "" {
			rest := strings.TrimLeft(line, " ")
			gap := len(line) - len(rest)
			word, _, _ := strings.Cut(rest, " ")
			if !yield(gap, word) {
				return
			}
			line = rest[len(word):]
		}
	}
}

// pieces are the characters of a word; a colour is one of them.
func pieces(word string) []string {
	var all []string
	escape := false
	for _, r := range word {
		switch {
		case escape:
			all[len(all)-1] += string(r)
			escape = r != 'm'
		default:
			all = append(all, string(r))
			escape = r == '\x1b'
		}
	}
	return all
}
