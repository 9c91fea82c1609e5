package appconfig

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// document is one parsed TOML file: plain values, and the place of each key.
//
// Values and places come from two passes of the same library, since its decoder
// stops at the first wrong type and we want to tell them all.
type document struct {
	file      string
	values    map[string]any
	positions map[string]Position // by key path
	lines     []int               // the offset of each line's first byte
	tooMuch   *Position           // where a limit was passed
}

// Limits on the shape of a document. Paths of keys are kept as text, so depth
// costs its square.
const (
	maxKeyDepth = 32     // tables, arrays and dotted keys inside each other
	maxKeys     = 10_000 // keys and array elements in one file; the decoder compares each with its siblings
)

// parseDocument returns a diagnostic instead of a document when the file is not
// TOML.
func parseDocument(file string, data []byte) (*document, *Diagnostic) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	doc := &document{file: file, values: map[string]any{}, positions: map[string]Position{}}
	if doc.index(data); doc.tooMuch != nil {
		return nil, &Diagnostic{Severity: Error, Code: CodeLimit, File: file, Line: doc.tooMuch.Line, Column: doc.tooMuch.Column,
			Message: fmt.Sprintf("has more than %d keys, or nests them deeper than %d", maxKeys, maxKeyDepth)}
	}
	if err := toml.Unmarshal(data, &doc.values); err != nil {
		d := Diagnostic{Severity: Error, Code: CodeSyntax, File: file, Message: "is not valid TOML: " + err.Error()}
		if decodeErr, ok := errors.AsType[*toml.DecodeError](err); ok {
			d.Line, d.Column = decodeErr.Position()
			d.Message = "is not valid TOML: " + trimTOMLPrefix(decodeErr.Error())
		}
		return nil, &d
	}
	return doc, nil
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
func (d *document) index(data []byte) {
	d.lines = []int{0}
	for i, c := range data {
		if c == '\n' {
			d.lines = append(d.lines, i+1)
		}
	}
	var p unstable.Parser
	p.Reset(data)
	table := Place{File: d.file}
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
func (d *document) header(expr *unstable.Node, items map[string]int, array bool) Place {
	at := Place{File: d.file}
	start := Position{}
	for it := expr.Key(); it.Next(); {
		at = at.key(string(it.Node().Data))
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
			at = at.item(n - 1)
		}
	}
	d.note(at, start)
	return at
}

func (d *document) keyValue(p *unstable.Parser, table Place, expr *unstable.Node) {
	at := table
	pos := Position{}
	for it := expr.Key(); it.Next(); {
		at = at.key(string(it.Node().Data))
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

func (d *document) value(p *unstable.Parser, at Place, pos Position, node *unstable.Node) {
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
			d.value(p, at.item(i), itemPos, child)
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
func (d *document) tooDeep(at Place, pos Position) bool {
	depth := strings.Count(at.Key, ".") + strings.Count(at.Key, "[")
	if d.tooMuch == nil && (depth > maxKeyDepth || len(d.positions) > maxKeys) {
		d.tooMuch = &pos
	}
	return d.tooMuch != nil
}

// note keeps the first position of a key: [a.b] before [a] stays with [a.b].
func (d *document) note(at Place, pos Position) {
	if _, ok := d.positions[at.Key]; !ok {
		d.positions[at.Key] = pos
	}
}

func (d *document) start(r unstable.Range) Position {
	offset := int(r.Offset)
	line, found := slices.BinarySearch(d.lines, offset)
	if !found {
		line-- // the line that begins before the offset
	}
	return Position{Line: line + 1, Column: offset - d.lines[line] + 1}
}
