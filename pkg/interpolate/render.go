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
	// MaxOutput is the longest result in bytes; 0 is DefaultMaxOutput.
	MaxOutput int
	// Timeout is how long rendering may take; 0 is DefaultTimeout.
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
	b := &budget{deadline: time.Now().Add(opts.Timeout), timeout: opts.Timeout}
	t := template.New(rootName).Option("missingkey=error").Funcs(functions(opts.Now, b))
	data := map[string]any(state)
	if usesAny(trees, mutators) {
		data, _ = normalise(data).(map[string]any)
	}
	places := map[string]string{}
	for name, tree := range trees {
		noteFields(tree, places)
		instrument(tree, name)
		if _, err := t.AddParseTree(name, tree); err != nil {
			return "", fmt.Errorf("add template: %w", err)
		}
	}
	out := &limitedWriter{left: opts.MaxOutput, limit: opts.MaxOutput}
	if err := t.Execute(out, data); err != nil {
		return "", renderError(err, places)
	}
	return out.b.String(), nil
}

// instrument makes every printing action end in emit, and every loop turn and
// named template begin with tick.
func instrument(tree *parse.Tree, name string) {
	if tree.Root == nil {
		return
	}
	walk(tree.Root, func(node parse.Node) {
		switch n := node.(type) {
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 {
				n.Pipe.Cmds = append(n.Pipe.Cmds, callTo(emitName, n.Pos))
			}
		case *parse.RangeNode:
			n.List.Nodes = slices.Insert(n.List.Nodes, 0, tickNode(n.Pos))
		}
	})
	if name != rootName {
		tree.Root.Nodes = slices.Insert(tree.Root.Nodes, 0, tickNode(tree.Root.Pos))
	}
}

func tickNode(pos parse.Pos) parse.Node {
	pipe := &parse.PipeNode{NodeType: parse.NodePipe, Pos: pos, Cmds: []*parse.CommandNode{callTo(tickName, pos)}}
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: pos, Pipe: pipe}
}

func callTo(function string, pos parse.Pos) *parse.CommandNode {
	ident := parse.NewIdentifier(function).SetPos(pos)
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: pos, Args: []parse.Node{ident}}
}

// noteFields remembers the full text of every field access by its location:
// text/template shortens it in its errors.
func noteFields(tree *parse.Tree, places map[string]string) {
	if tree.Root == nil {
		return
	}
	walk(tree.Root, func(node parse.Node) {
		switch node.(type) {
		case *parse.FieldNode, *parse.ChainNode, *parse.VariableNode:
			location, _ := tree.ErrorContext(node)
			places[strings.TrimPrefix(location, rootName+":")] = node.String()
		}
	})
}

var (
	execMessage = regexp.MustCompile(`(?s)^template: [^:]*:(\d+):(\d+): executing .*? at <.*?>: (.*)$`)
	noEntry     = regexp.MustCompile(`map has no entry for key "(.*)"`)
	callError   = regexp.MustCompile(`(?s)^error calling (\w+): `)
	nilField    = regexp.MustCompile(`nil (?:pointer|data).*?(?:\.(\w+)|key "(.*)")$`)
)

func renderError(err error, places map[string]string) error {
	e := &Error{Message: err.Error()}
	path := ""
	if m := execMessage.FindStringSubmatch(err.Error()); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		e.Column, _ = strconv.Atoi(m[2])
		e.Column++
		e.Message, path = m[3], places[m[1]+":"+m[2]]
	}
	if inner, ok := errors.AsType[*Error](err); ok {
		e.Message, e.Missing = inner.Message, inner.Missing
		return e
	}
	if m := callError.FindStringSubmatch(e.Message); m != nil && m[1] != "fail" {
		e.Message = m[1] + " cannot work with this value" // its own words may repeat the value
		return e
	}
	if m := noEntry.FindStringSubmatch(e.Message); m != nil {
		e.Missing = path
		if e.Missing == "" {
			e.Missing = m[1]
		}
		e.Message = fmt.Sprintf("%s: there is no %q", e.Missing, m[1])
	} else if nilField.MatchString(e.Message) && path != "" {
		e.Missing = path
		e.Message = path + ": a part of this path is null"
	}
	return e
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
