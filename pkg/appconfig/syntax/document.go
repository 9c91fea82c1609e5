// Package syntax reads one TOML file: its plain values with the place of each
// key, within limits that hold for hostile files too, and the one form that all
// files should have.
package syntax

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// Document is one parsed TOML file: plain values, and the place of each key.
//
// Values and places come from two passes of the same library, since its decoder
// stops at the first wrong type and we want to tell them all.
type Document struct {
	File      string
	Values    map[string]any
	Positions map[string]place.Position // by key path
	lines     []int                     // the offset of each line's first byte
	tooMuch   *place.Position           // where a limit was passed
}

// Limits on the shape of a document. Paths of keys are kept as text, so depth
// costs its square.
const (
	maxKeyDepth = 32     // tables, arrays and dotted keys inside each other
	maxKeys     = 10_000 // keys and array elements in one file; the decoder compares each with its siblings
)

// Parse returns a diagnostic instead of a document when the file is not
// TOML.
func Parse(file string, data []byte) (*Document, *place.Diagnostic) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	doc := &Document{File: file, Values: map[string]any{}, Positions: map[string]place.Position{}}
	if doc.index(data); doc.tooMuch != nil {
		return nil, &place.Diagnostic{Severity: place.Error, Code: place.CodeLimit, File: file, Line: doc.tooMuch.Line, Column: doc.tooMuch.Column,
			Message: fmt.Sprintf("has more than %d keys, or nests them deeper than %d", maxKeys, maxKeyDepth)}
	}
	if err := toml.Unmarshal(data, &doc.Values); err != nil {
		d := place.Diagnostic{Severity: place.Error, Code: place.CodeSyntax, File: file, Message: "is not valid TOML: " + err.Error()}
		if decodeErr, ok := errors.AsType[*toml.DecodeError](err); ok {
			d.Line, d.Column = decodeErr.Position()
			d.Message = "is not valid TOML: " + trimTOMLPrefix(decodeErr.Error())
			if key, word := bareText(data, d.Line); key != "" {
				d = d.WithRemedy("a text stands in quotes: %s = %q", key, word)
			}
		}
		return nil, &d
	}
	return doc, nil
}

// assignment is a key with a value that begins like a word, and a comment.
var assignment = regexp.MustCompile(`^\s*([A-Za-z0-9_.-]+)\s*=\s*([A-Za-z_./$][^"'#\[\]{}]*?)\s*(?:#.*)?$`)

// bareText returns the key and the value of a line that gives a text without
// quotes, "" when it does not: the parser takes it for true, nan or a date.
func bareText(data []byte, line int) (key, text string) {
	lines := bytes.Split(data, []byte("\n"))
	if line < 1 || line > len(lines) {
		return "", ""
	}
	found := assignment.FindSubmatch(lines[line-1])
	if found == nil {
		return "", ""
	}
	return string(found[1]), string(found[2])
}

func trimTOMLPrefix(msg string) string {
	const prefix = "toml: "
	if len(msg) > len(prefix) && msg[:len(prefix)] == prefix {
		return msg[len(prefix):]
	}
	return msg
}

// index records where each key stands, up to the first syntax error, which
// decoding will tell.
func (d *Document) index(data []byte) {
	d.lines = []int{0}
	for i, c := range data {
		if c == '\n' {
			d.lines = append(d.lines, i+1)
		}
	}
	var p unstable.Parser
	p.Reset(data)
	table := place.Place{File: d.File}
	items := map[string]int{} // array of tables → how many so far
	for d.tooMuch == nil && p.NextExpression() {
		expr := p.Expression()
		switch expr.Kind {
		case unstable.Table:
			table = d.header(expr, items, false)
		case unstable.ArrayTable:
			table = d.header(expr, items, true)
		case unstable.KeyValue:
			d.keyValue(&p, table, expr)
		}
	}
}

// header returns the place that a [table] or [[array]] header opens. A header
// below an array of tables belongs to the array's last element.
func (d *Document) header(expr *unstable.Node, items map[string]int, array bool) place.Place {
	at := place.Place{File: d.File}
	start := place.Position{}
	for it := expr.Key(); it.Next(); {
		at = at.Below(string(it.Node().Data))
		if start.Line == 0 {
			start = d.start(it.Node().Raw)
		}
		if d.tooDeep(at, start) {
			return at
		}
		d.note(at, start)
		if it.IsLast() && array {
			items[at.Key]++
		}
		if n := items[at.Key]; n > 0 {
			at = at.Item(n - 1)
		}
	}
	d.note(at, start)
	return at
}

func (d *Document) keyValue(p *unstable.Parser, table place.Place, expr *unstable.Node) {
	at := table
	pos := place.Position{}
	for it := expr.Key(); it.Next(); {
		at = at.Below(string(it.Node().Data))
		if pos.Line == 0 {
			pos = d.start(it.Node().Raw)
		}
		if d.tooDeep(at, pos) {
			return
		}
		if !it.IsLast() {
			d.note(at, pos)
		}
	}
	d.value(p, at, pos, expr.Value())
}

func (d *Document) value(p *unstable.Parser, at place.Place, pos place.Position, node *unstable.Node) {
	if d.tooDeep(at, pos) {
		return
	}
	switch node.Kind {
	case unstable.String:
		raw := p.Raw(node.Raw)
		for _, quotes := range []string{`"""`, `'''`} {
			rest, ok := bytes.CutPrefix(raw, []byte(quotes))
			if !ok {
				continue // one line in the file, however many \n it has
			}
			if pos.ValueLine = d.start(node.Raw).Line; bytes.HasPrefix(rest, []byte("\n")) || bytes.HasPrefix(rest, []byte("\r\n")) {
				pos.ValueLine++ // the newline after the quotes is not part of the value
			}
		}
	case unstable.Array:
		i := 0
		for it := node.Children(); it.Next(); {
			child := it.Node()
			if child.Kind == unstable.Comment {
				continue
			}
			itemPos := pos
			if child.Raw.Length > 0 {
				itemPos = d.start(child.Raw)
			}
			d.value(p, at.Item(i), itemPos, child)
			i++
		}
	case unstable.InlineTable:
		for it := node.Children(); it.Next(); {
			if it.Node().Kind == unstable.KeyValue {
				d.keyValue(p, at, it.Node())
			}
		}
	}
	d.note(at, pos)
}

// tooDeep tells, and remembers, that a limit is passed.
func (d *Document) tooDeep(at place.Place, pos place.Position) bool {
	depth := strings.Count(at.Key, ".") + strings.Count(at.Key, "[")
	if d.tooMuch == nil && (depth > maxKeyDepth || len(d.Positions) > maxKeys) {
		d.tooMuch = &pos
	}
	return d.tooMuch != nil
}

// note keeps the first position of a key: [a.b] before [a] stays with [a.b].
func (d *Document) note(at place.Place, pos place.Position) {
	if _, ok := d.Positions[at.Key]; !ok {
		d.Positions[at.Key] = pos
	}
}

func (d *Document) start(r unstable.Range) place.Position {
	offset := int(r.Offset)
	line, found := slices.BinarySearch(d.lines, offset)
	if !found {
		line-- // the line that begins before the offset
	}
	return place.Position{Line: line + 1, Column: offset - d.lines[line] + 1}
}
