package interpolate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/template/parse"
	"time"

	"github.com/Masterminds/semver/v3"
)

// fields looks names up where a template writes a path. text/template could,
// but says too little when a key is not there.
type fields struct {
	data   map[string]any
	budget *budget
}

// get follows names from a value. The text is how the template writes it.
func (f fields) get(from any, text string, names ...string) (any, error) {
	if err := f.budget.spend(1); err != nil {
		return nil, err
	}
	at := from
	for i, name := range names {
		switch v := at.(type) {
		case nil:
			return nil, &Error{Message: text + ": a part of this path is null", Missing: f.absolute(from, names[:i+1], text)}
		case map[string]any:
			next, ok := v[name]
			if !ok {
				return nil, missing(f.data, v, text, names[i:]...)
			}
			at = next
		case map[string]string:
			next, ok := v[name]
			if !ok {
				return nil, &Error{Message: fmt.Sprintf("%s: there is no %q", text, name), Missing: text}
			}
			at = next
		default:
			next, err := property(at, name)
			if err != nil {
				return nil, &Error{Message: fmt.Sprintf("%s: %s", text, err.Error())}
			}
			at = next
		}
	}
	return at, nil
}

// property calls a method without arguments of the few types that have some
// which always give the same answer: times, durations, versions.
func property(v any, name string) (any, error) {
	none := fmt.Errorf("cannot look up %q in %s", name, kindName(v))
	switch v.(type) {
	case time.Time, time.Duration, time.Month, time.Weekday, *semver.Version, semver.Version:
	default:
		return nil, none
	}
	if name == "Local" { // the zone of the machine
		return nil, none
	}
	m := reflect.ValueOf(v).MethodByName(name)
	if !m.IsValid() || m.Type().NumIn() != 0 || m.Type().NumOut() != 1 {
		return nil, none
	}
	return m.Call(nil)[0].Interface(), nil
}

// missing is the error for a key that is not in a map, the first of names; the
// others are what would have been looked up below it. It names the path, and
// what is there instead. Keys are names given by authors, never values.
func missing(data, parent map[string]any, text string, names ...string) *Error {
	name, rest := names[0], names[1:]
	e := &Error{Message: fmt.Sprintf("there is no %q", name), Missing: text}
	where, known := locate(data, parent)
	if known {
		e.Missing = strings.Join(append([]string{where, name}, rest...), ".")
	} else if text == "" {
		e.Missing = name
	}
	if known && text != e.Missing && where != "" {
		e.Message += " in " + where
	}
	if text != "" {
		e.Message = text + ": " + e.Message
	}
	keys := sortedKeys(parent)
	e.Nearest = nearestName(name, keys)
	if known && e.Nearest != "" {
		e.NearestPath = strings.Join(append([]string{where, e.Nearest}, rest...), ".")
	}
	const shown = 6
	switch {
	case e.Nearest != "":
		e.Message += fmt.Sprintf("; the nearest is %q", e.Nearest)
	case len(keys) == 0:
		e.Message += "; there is nothing yet"
	case len(keys) > shown:
		e.Message += fmt.Sprintf("; there are %s and %d more", strings.Join(keys[:shown], ", "), len(keys)-shown)
	default:
		e.Message += "; there is " + strings.Join(keys, ", ")
	}
	return e
}

// absolute is the path from the root where it is known, else the text.
func (f fields) absolute(from any, names []string, text string) string {
	if m, ok := from.(map[string]any); ok {
		if where, known := locate(f.data, m); known {
			return strings.Join(append([]string{where}, names...), ".")
		}
	}
	return text
}

// locate finds the path of a map in the data: it is looked for by identity,
// and only when something went wrong.
func locate(data, wanted map[string]any) (string, bool) {
	id := reflect.ValueOf(wanted).Pointer()
	if reflect.ValueOf(data).Pointer() == id {
		return "", true
	}
	visited := map[uintptr]bool{}
	var search func(v any, path string) (string, bool)
	search = func(v any, path string) (string, bool) {
		switch v := v.(type) {
		case map[string]any:
			p := reflect.ValueOf(v).Pointer()
			if p == id {
				return path, true
			}
			if visited[p] {
				return "", false
			}
			visited[p] = true
			keys := sortedKeys(v)
			if i := slices.Index(keys, "install"); i >= 0 && path == ".nuon" {
				keys = append(slices.Delete(keys, i, i+1), "install") // the alias comes last
			}
			for _, k := range keys {
				if found, ok := search(v[k], path+"."+k); ok {
					return found, true
				}
			}
		case []any:
			for i, item := range v {
				if found, ok := search(item, fmt.Sprintf("%s.%d", path, i)); ok {
					return found, true
				}
			}
		}
		return "", false
	}
	for _, root := range []string{"nuon", "action"} {
		if found, ok := search(data[root], "."+root); ok {
			return found, true
		}
	}
	return "", false
}

// nearestName returns the candidate that is spelt most like a name, "" when
// none is close: a third of its letters may differ.
func nearestName(name string, candidates []string) string {
	const longest = 64 // letters; the comparison costs their square
	best, distance := "", max(1, len(name)/3)+1
	if len(name) > longest {
		return ""
	}
	for _, c := range candidates {
		if len(c) > longest {
			continue
		}
		if d := edits(name, c); d < distance {
			best, distance = c, d
		}
	}
	return best
}

// edits counts the letters to insert, delete, replace, or swap with their
// neighbour to make b from a.
func edits(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// throughFields rewrites every path in a template into a call of fields.get.
func throughFields(tree *parse.Tree) {
	walk(tree.Root, func(node parse.Node) {
		pipe, ok := node.(*parse.PipeNode)
		if !ok {
			return
		}
		for i, cmd := range pipe.Cmds {
			for j, arg := range cmd.Args {
				if j == 0 && (i > 0 || len(cmd.Args) > 1) {
					cmd.Args[j] = methodOf(arg)
				} else {
					cmd.Args[j] = lookup(arg)
				}
			}
		}
	})
}

// lookup turns a path into (_field from "text" "name" …); everything else
// stays.
func lookup(node parse.Node) parse.Node {
	switch n := node.(type) {
	case *parse.FieldNode:
		return fieldCall(&parse.DotNode{NodeType: parse.NodeDot, Pos: n.Pos}, n.String(), n.Ident, n.Pos)
	case *parse.VariableNode:
		if len(n.Ident) > 1 {
			return fieldCall(variable(n), n.String(), n.Ident[1:], n.Pos)
		}
	case *parse.ChainNode:
		return fieldCall(lookup(n.Node), n.String(), n.Field, n.Pos)
	}
	return node
}

// methodOf is lookup for the first word of a command with arguments, whose
// last name is a method: (now).Format "2006".
func methodOf(node parse.Node) parse.Node {
	var from parse.Node
	var names []string
	switch n := node.(type) {
	case *parse.FieldNode:
		from, names = &parse.DotNode{NodeType: parse.NodeDot, Pos: n.Pos}, n.Ident
	case *parse.VariableNode:
		from, names = variable(n), n.Ident[1:]
	case *parse.ChainNode:
		from, names = lookup(n.Node), n.Field
	}
	if len(names) < 2 {
		return node
	}
	last := len(names) - 1
	receiver := fieldCall(from, node.String(), names[:last], node.Position())
	return &parse.ChainNode{NodeType: parse.NodeChain, Pos: node.Position(), Node: receiver, Field: names[last:]}
}

func variable(n *parse.VariableNode) *parse.VariableNode {
	return &parse.VariableNode{NodeType: parse.NodeVariable, Pos: n.Pos, Ident: slices.Clone(n.Ident[:1])}
}

func fieldCall(from parse.Node, text string, names []string, pos parse.Pos) parse.Node {
	const shown = 200 // bytes of a path in an error
	if len(text) > shown {
		text = text[:shown] + "…"
	}
	cmd := callTo(fieldName, pos)
	cmd.Args = append(cmd.Args, from)
	for _, s := range append([]string{text}, names...) {
		cmd.Args = append(cmd.Args, &parse.StringNode{NodeType: parse.NodeString, Pos: pos, Quoted: fmt.Sprintf("%q", s), Text: s})
	}
	return &parse.PipeNode{NodeType: parse.NodePipe, Pos: pos, Cmds: []*parse.CommandNode{cmd}}
}
