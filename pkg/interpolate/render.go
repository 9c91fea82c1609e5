package interpolate

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
	"time"
)

const (
	DefaultMaxOutput = 1 << 20 // bytes
	DefaultTimeout   = 2 * time.Second
)

// Options bounds a rendering; the zero value is safe.
type Options struct {
	// Now is what `now` returns. Freeze it per step, so that rendering twice
	// gives the same bytes. With the zero time `now` is an error.
	Now time.Time
	// File is where the template stands, for errors: a path, or a key.
	File string
	// MaxOutput is the longest result in bytes; 0 is DefaultMaxOutput.
	MaxOutput int
	// Timeout is how long rendering may take; 0 is DefaultTimeout. It is the
	// second net: what a template does is counted, and most that never end are
	// found after the same step everywhere.
	Timeout time.Duration
}

// Render renders a template. A string that is no template (see IsTemplate) is
// returned as it is; use RenderAlways for READMEs. Errors are *Error; they name
// paths and places, never values of the state.
func Render(src string, state State, opts Options) (string, error) {
	if !IsTemplate(src) {
		return src, nil
	}
	return RenderAlways(src, state, opts)
}

// RenderAlways renders text that is a template whatever it mentions.
func RenderAlways(src string, state State, opts Options) (string, error) {
	out, err := render(src, state, opts)
	if err == nil {
		return out, nil
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{Message: err.Error()}
	}
	placed := *e
	placed.File = opts.File
	return "", &placed
}

func render(src string, state State, opts Options) (string, error) {
	trees, err := parseSource(src)
	if err != nil {
		return "", err
	}
	if opts.MaxOutput == 0 {
		opts.MaxOutput = DefaultMaxOutput
	}
	if opts.Timeout == 0 {
		opts.Timeout = DefaultTimeout
	}
	data := map[string]any(state)
	if usesAny(trees, mutators) {
		data, _ = normalise(data).(map[string]any)
	}
	b := &budget{deadline: time.Now().Add(opts.Timeout), timeout: opts.Timeout}
	t := template.New(rootName).Option("missingkey=error").Funcs(functions(opts.Now, data, b))
	for name, tree := range trees {
		instrument(tree, name)
		if _, err := t.AddParseTree(name, tree); err != nil {
			return "", fmt.Errorf("add template: %w", err)
		}
	}
	out := &limitedWriter{left: opts.MaxOutput, limit: opts.MaxOutput}
	if err := t.Execute(out, data); err != nil {
		return "", renderError(err, src)
	}
	return out.b.String(), nil
}

// instrument makes every path a call of fields.get, every printing action end
// in emit, every loop turn begin with tick, and every named template begin
// with enter and end with leave.
func instrument(tree *parse.Tree, name string) {
	if tree.Root == nil {
		return
	}
	throughFields(tree)
	walk(tree.Root, func(node parse.Node) {
		switch n := node.(type) {
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 && !isSilent(n) {
				n.Pipe.Cmds = append(n.Pipe.Cmds, callTo(emitName, n.Pos))
			}
		case *parse.RangeNode:
			n.List.Nodes = slices.Insert(n.List.Nodes, 0, silent(n.Pos, tickName, weight(n.List)))
		}
	})
	if name != rootName {
		tree.Root.Nodes = slices.Insert(tree.Root.Nodes, 0, silent(tree.Root.Pos, enterName, weight(tree.Root)))
		tree.Root.Nodes = append(tree.Root.Nodes, silent(tree.Root.Pos, leaveName, 0))
	}
}

// weight counts the nodes that one turn of a list executes at most, loops
// inside of it left out: they count for themselves.
func weight(node parse.Node) int {
	n := 1
	switch node := node.(type) {
	case *parse.ListNode:
		if node != nil {
			for _, child := range node.Nodes {
				n += weight(child)
			}
		}
	case *parse.IfNode:
		n += weight(node.List) + weight(node.ElseList)
	case *parse.WithNode:
		n += weight(node.List) + weight(node.ElseList)
	case *parse.RangeNode:
		n += weight(node.ElseList)
	}
	return n
}

// silent calls one of our functions that prints nothing.
func silent(pos parse.Pos, function string, work int) parse.Node {
	cmd := callTo(function, pos)
	if work > 0 {
		text := strconv.Itoa(work)
		cmd.Args = append(cmd.Args, &parse.NumberNode{
			NodeType: parse.NodeNumber, Pos: pos, IsInt: true, Int64: int64(work), IsUint: true, Uint64: uint64(work),
			IsFloat: true, Float64: float64(work), Text: text,
		})
	}
	pipe := &parse.PipeNode{NodeType: parse.NodePipe, Pos: pos, Cmds: []*parse.CommandNode{cmd}}
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: pos, Pipe: pipe}
}

func isSilent(n *parse.ActionNode) bool {
	ident, ok := n.Pipe.Cmds[0].Args[0].(*parse.IdentifierNode)
	return ok && ident.Ident == tickName
}

func callTo(function string, pos parse.Pos) *parse.CommandNode {
	ident := parse.NewIdentifier(function).SetPos(pos)
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: pos, Args: []parse.Node{ident}}
}

var (
	execMessage = regexp.MustCompile(`(?s)^template: [^:]*:(\d+):(\d+): executing .*? at <.*?>: (.*)$`)
	callError   = regexp.MustCompile(`(?s)^error calling (\w+): `)
)

func renderError(err error, src string) error {
	e := &Error{Message: err.Error()}
	if m := execMessage.FindStringSubmatch(err.Error()); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		e.Column, _ = strconv.Atoi(m[2])
		e.Line, e.Column = pathStart(src, offsetOf(src, e.Line, e.Column+1))
		e.Message = m[3]
	}
	if inner, ok := errors.AsType[*Error](err); ok {
		e.Message, e.Missing, e.Nearest, e.NearestPath = inner.Message, inner.Missing, inner.Nearest, inner.NearestPath
		return e
	}
	if m := callError.FindStringSubmatch(e.Message); m != nil && m[1] != "fail" {
		e.Message = m[1] + " cannot work with this value" // its own words may repeat the value
	}
	return e
}

// offsetOf is the inverse of place.
func offsetOf(src string, line, column int) int {
	at := 0
	for range line - 1 {
		i := strings.IndexByte(src[at:], '\n')
		if i < 0 {
			break
		}
		at += i + 1
	}
	return min(at+column-1, len(src))
}

// limitedWriter collects the output up to its limit.
type limitedWriter struct {
	b           strings.Builder
	left, limit int
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, &Error{Message: fmt.Sprintf("the result is larger than %d bytes", w.limit)}
	}
	return w.b.Write(p)
}
