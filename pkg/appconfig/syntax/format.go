package syntax

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// Format returns a TOML file in the one form that all files should have:
//
//   - equal signs stand below each other in each block of keys: lines without
//     an empty line or a comment between them
//   - one empty line before each table, none after its header, and never two in
//     a row; comments above a header stay with it
//   - elements of a list that goes over several lines are indented by two spaces
//   - no spaces at the ends of lines, and one newline at the end of the file
//
// Keys, values and comments stay as they are, in their order, and strings of
// several lines byte by byte: the result means the same, which is checked
// before it is returned. Formatting it again changes nothing.
//
// For a file that is not TOML the answer is a diagnostic instead.
func Format(file string, data []byte) ([]byte, *place.Diagnostic) {
	before, problem := Parse(file, data)
	if problem != nil {
		return nil, problem
	}
	out := layOut(logicalLines(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))))
	after := map[string]any{}
	if err := toml.Unmarshal(out, &after); err != nil || !sameValues(before.Values, after) {
		return nil, &place.Diagnostic{Severity: place.Error, Code: place.CodeSyntax, File: file, Message: "cannot be formatted without changing what it means, so it stays as it is"}
	}
	return out, nil
}

// sameValues also finds "not a number" equal to itself.
func sameValues(a, b map[string]any) bool {
	return reflect.DeepEqual(a, b) || fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b)
}

type lineKind int

const (
	blankLine lineKind = iota
	commentLine
	headerLine
	keyLine
)

// logicalLine is one expression of TOML with its comment, which is more than
// one line where a value is.
type logicalLine struct {
	kind    lineKind
	key     string // of a key: everything before the equal sign; else the header
	value   string // as it will be written, over several lines perhaps
	comment string // with its "#"; "" when there is none
}

// logicalLines takes a valid document apart.
func logicalLines(data []byte) []logicalLine {
	var lines []logicalLine
	for r := (lexer{rest: string(data)}); r.rest != ""; {
		lines = append(lines, r.line())
	}
	return lines
}

// lexer reads a valid TOML document; it only needs to know strings from what
// is between them.
type lexer struct{ rest string }

func (r *lexer) line() logicalLine {
	r.skip(" \t")
	switch {
	case r.rest == "" || r.rest[0] == '\n' || strings.HasPrefix(r.rest, "\r\n"):
		r.newline()
		return logicalLine{kind: blankLine}
	case r.rest[0] == '#':
		return logicalLine{kind: commentLine, comment: r.comment()}
	case r.rest[0] == '[':
		return logicalLine{kind: headerLine, key: r.header(), comment: r.comment()}
	}
	l := logicalLine{kind: keyLine, key: r.dottedKey("=")}
	r.rest = r.rest[1:] // the equal sign
	r.skip(" \t")
	l.value = r.value()
	l.comment = r.comment()
	return l
}

func (r *lexer) skip(cutset string) { r.rest = strings.TrimLeft(r.rest, cutset) }

func (r *lexer) newline() {
	if _, rest, ok := strings.Cut(r.rest, "\n"); ok {
		r.rest = rest
	} else {
		r.rest = ""
	}
}

// comment takes what is left of a line: a comment, or nothing.
func (r *lexer) comment() string {
	line, _, _ := strings.Cut(r.rest, "\n")
	r.newline()
	return strings.Trim(line, " \t\r")
}

// header takes [a.b] or [[a.b]].
func (r *lexer) header() string {
	opening, closing := "[", "]"
	if strings.HasPrefix(r.rest, "[[") {
		opening, closing = "[[", "]]"
	}
	r.rest = r.rest[len(opening):]
	key := r.dottedKey("]")
	r.rest = r.rest[len(closing):]
	return opening + key + closing
}

// dottedKey takes the parts of a key up to a delimiter, with no space around
// its dots.
func (r *lexer) dottedKey(end string) string {
	var b strings.Builder
	for r.rest != "" && !strings.HasPrefix(r.rest, end) {
		switch c := r.rest[0]; c {
		case ' ', '\t':
			r.rest = r.rest[1:]
		case '"', '\'':
			b.WriteString(r.quoted())
		default:
			b.WriteByte(c)
			r.rest = r.rest[1:]
		}
	}
	return b.String()
}

// quoted takes one string of any of the four kinds, byte by byte.
func (r *lexer) quoted() string {
	quote := r.rest[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(r.rest, triple) {
		quote = triple
	}
	i := len(quote)
	for i < len(r.rest) && !strings.HasPrefix(r.rest[i:], quote) {
		if r.rest[i] == '\\' && quote[0] == '"' {
			i++
		}
		i++
	}
	i = min(i+len(quote), len(r.rest))
	for n := 0; len(quote) == 3 && n < 2 && strings.HasPrefix(r.rest[i:], quote[:1]); n++ {
		i++ // up to two quotes may stand before the closing ones
	}
	taken := r.rest[:i]
	r.rest = r.rest[i:]
	return taken
}

// value takes a value up to the end of its line or its comment.
func (r *lexer) value() string {
	var out []byte
	for depth := 0; r.rest != ""; {
		switch c := r.rest[0]; {
		case c == '"' || c == '\'':
			out = append(out, r.quoted()...)
			continue
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case depth == 0 && (c == '#' || c == '\n'):
			return string(trimmed(out))
		case c == '#': // inside a list
			line, _, _ := strings.Cut(r.rest, "\n")
			out = append(out, strings.TrimRight(line, " \t\r")...)
			r.rest = r.rest[len(line):]
			continue
		case c == '\n':
			out = r.breakInside(trimmed(out), depth)
			continue
		}
		out = append(out, r.rest[0])
		r.rest = r.rest[1:]
	}
	return string(trimmed(out))
}

func trimmed(line []byte) []byte { return bytes.TrimRight(line, " \t\r") }

// breakInside takes the end of a line inside a list, and the indentation of
// the next one. Empty lines in a row become one; none stands behind the
// opening bracket or before the closing one.
func (r *lexer) breakInside(out []byte, depth int) []byte {
	breaks := 0
	for r.rest != "" && strings.IndexByte(" \t\r\n", r.rest[0]) >= 0 {
		if r.rest[0] == '\n' {
			breaks++
		}
		r.rest = r.rest[1:]
	}
	closing := 0
	for closing < min(depth, len(r.rest)) && (r.rest[closing] == ']' || r.rest[closing] == '}') {
		closing++
	}
	opened := bytes.HasSuffix(out, []byte("[")) || bytes.HasSuffix(out, []byte("{"))
	out = append(out, '\n')
	if breaks > 1 && closing == 0 && !opened {
		out = append(out, '\n')
	}
	return append(out, strings.Repeat("  ", depth-closing)...)
}

// layOut writes logical lines with the spacing that they should have.
func layOut(lines []logicalLine) []byte {
	var out bytes.Buffer
	for i, blank := 0, false; i < len(lines); {
		l := lines[i]
		if l.kind == blankLine {
			blank = out.Len() > 0
			i++
			continue
		}
		// The first line of a group of comments decides for all of it.
		if out.Len() > 0 && lines[i-1].kind != commentLine {
			blank = opensTable(lines[i:]) || blank && !followsHeader(lines[:i])
		}
		if blank {
			out.WriteByte('\n')
		}
		blank = false
		if l.kind == keyLine {
			n := blockOf(lines[i:])
			writeBlock(&out, lines[i:i+n])
			i += n
			continue
		}
		out.WriteString(l.key)
		if l.key != "" && l.comment != "" {
			out.WriteByte(' ')
		}
		out.WriteString(l.comment)
		out.WriteByte('\n')
		i++
	}
	return out.Bytes()
}

// opensTable tells whether a header comes next, with its comments above it.
func opensTable(lines []logicalLine) bool {
	for _, l := range lines {
		if l.kind != commentLine {
			return l.kind == headerLine
		}
	}
	return false
}

// followsHeader tells whether a header is the last thing before here.
func followsHeader(before []logicalLine) bool {
	for i := len(before) - 1; i >= 0; i-- {
		if before[i].kind != blankLine {
			return before[i].kind == headerLine
		}
	}
	return false
}

// blockOf counts the keys whose equal signs stand below each other.
func blockOf(lines []logicalLine) int {
	n := 0
	for n < len(lines) && lines[n].kind == keyLine {
		n++
		if strings.Contains(lines[n-1].value, "\n") {
			break // what comes below a long value is not compared with what is above
		}
	}
	return n
}

func writeBlock(out *bytes.Buffer, lines []logicalLine) {
	widest := 0
	for _, l := range lines {
		widest = max(widest, utf8.RuneCountInString(l.key))
	}
	for _, l := range lines {
		out.WriteString(l.key)
		out.WriteString(strings.Repeat(" ", widest-utf8.RuneCountInString(l.key)))
		out.WriteString(" = ")
		out.WriteString(l.value)
		if l.comment != "" {
			out.WriteByte(' ')
			out.WriteString(l.comment)
		}
		out.WriteByte('\n')
	}
}
