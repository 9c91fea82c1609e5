package output

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/berth-dev/berth/pkg/visible"
)

// cell makes sure that a value is one line and never empty, so that columns
// can be counted.
func cell(text string) string {
	text = OneLine(text)
	if text == "" {
		return "-"
	}
	return text
}

// OneLine is text on one line: its words, visible, with a space between them.
// Values may be anybody's.
func OneLine(text string) string {
	return visible.Line(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' }), " "))
}

// Wrap breaks a text between words into lines of at most width characters; what
// follows the first is indented. 0 leaves it on one line.
func Wrap(text string, width int, indent string) []string {
	text = OneLine(text)
	if width <= 0 {
		return []string{text}
	}
	var lines []string
	line, used := "", 0 // used: a line that has no word yet is its indent only
	for word := range strings.SplitSeq(text, " ") {
		length := utf8.RuneCountInString(word)
		switch {
		case used == 0 && len(lines) == 0:
			line, used = word, length
		case used+1+length > width:
			lines, line, used = append(lines, line), indent+word, len(indent)+length
		default:
			line, used = line+" "+word, used+1+length
		}
	}
	return append(lines, line)
}

func widthsOf(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for i, text := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	return widths
}

// aligned is how rows are printed in columns.
type aligned struct {
	gap         string
	color, head bool // head: the first row is one
}

// align prints rows in columns. Colours are added after the widths are known.
func align(w io.Writer, rows [][]string, o aligned) error {
	color, head := o.color, o.head
	widths := widthsOf(rows)
	for n, row := range rows {
		var line strings.Builder
		for i, text := range row {
			shown := text
			switch {
			case color && (n == 0 && head || i == 0 && !head):
				shown = Paint(true, Dim, text)
			case color:
				shown = Paint(true, StyleOf(text), text)
			}
			line.WriteString(shown)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)))
				line.WriteString(o.gap)
			}
		}
		if _, err := fmt.Fprintln(w, line.String()); err != nil {
			return err
		}
	}
	return nil
}

// Style is how text looks on a terminal.
type Style string

// The styles.
const (
	Plain  Style = ""
	Dim    Style = "2"
	Good   Style = "32" // green
	Bad    Style = "31" // red
	Notice Style = "33" // yellow
)

// StyleOf colours the words that states are made of; what follows a comma only
// adds to them.
func StyleOf(word string) Style {
	word, _, _ = strings.Cut(word, ",")
	if strings.HasPrefix(word, "denied by ") {
		return Notice
	}
	switch word {
	case "healthy", "live", "succeeded", "released", "applied", "online", "active", "✓":
		return Good
	case "unhealthy", "failed", "refused", "uncertain", "revoked", "provision failed", "deprovision failed", "✗":
		return Bad
	case "not provisioned", "deprovisioned", "off", "rehearsed", "◇ rehearsed":
		return Dim
	case "waiting", "proposed", "denied", "expired: nobody decided", "provision denied", "provision expired", "deprovision denied", "deprovision expired", "provisioning", "deprovisioning", "building", "running", "executing", "stale", "unknown", "queued", "pending", "drifted", "suspected":
		return Notice
	}
	return Plain
}

// Paint gives text a style when color is on. The colours show behind a
// visible.Writer, which every command writes to.
func Paint(color bool, s Style, text string) string {
	if !color || s == Plain {
		return text
	}
	return visible.Own("\x1b["+string(s)+"m") + text + visible.Own("\x1b[0m")
}
