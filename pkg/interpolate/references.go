package interpolate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template/parse"
)

// Roots of a Reference.
const (
	RootTree   = "nuon"   // .nuon or .berth: the tree
	RootAction = "action" // .action: what the caller of an action gave
)

// Any stands in a path for an element that is only known when rendering.
const Any = "*"

// Reference is one part of the tree that a template reads.
type Reference struct {
	Root string `json:"root"`
	// Path below the root with legacy aliases resolved, such as
	// ["components", "api", "outputs", "url"].
	Path   []string `json:"path"`
	Line   int      `json:"line"`   // in the source, from 1
	Column int      `json:"column"` // from 1, in bytes
}

func (r Reference) String() string {
	return "." + strings.Join(append([]string{r.Root}, r.Path...), ".")
}

// References lists everything that a template can read, found in its syntax
// tree: plain paths, index with constant keys, and what variables, with, range,
// named templates and pipelines make of them. Where the template computes a
// name, the path has Any there or ends early, so nothing is missed; a string
// that is no template has no references.
func References(src string) ([]Reference, error) {
	if !IsTemplate(src) {
		return nil, nil
	}
	return ReferencesAlways(src)
}

// ReferencesAlways is References for text that is a template whatever it
// mentions.
func ReferencesAlways(src string) ([]Reference, error) {
	trees, err := parseSource(src)
	if err != nil {
		return nil, err
	}
	t := &tracer{src: src, trees: trees, seen: map[string]bool{}, calls: map[string]bool{}}
	root := value{paths: [][]string{{}}}
	t.scopes = []map[string]value{{"$": root}}
	t.node(trees[rootName].Root, root)
	if t.steps > maxSteps {
		return nil, &Error{Message: "the template is too complicated: what it reads cannot be found out"}
	}
	return t.found, nil
}

// value is what a pipeline can be, as far as it is known without rendering:
// any of some paths, or any of some constant strings.
type value struct {
	paths  [][]string
	consts []string
}

func (v value) union(o value) value {
	return value{paths: slices.Concat(v.paths, o.paths), consts: slices.Concat(v.consts, o.consts)}
}

// below follows names from every path of the value.
func (v value) below(names ...string) value {
	if len(names) == 0 {
		return v
	}
	out := value{}
	for _, p := range v.paths {
		p = slices.Concat(p, names)
		out.paths = append(out.paths, p[:min(len(p), maxPath)])
	}
	return out
}

// at follows a computed key: its constants, or Any.
func (v value) at(key value) value {
	if len(key.consts) == 0 || len(key.paths) > 0 {
		return v.below(Any)
	}
	out := value{}
	for _, name := range key.consts {
		out = out.union(v.below(name))
	}
	return out
}

// Limits on the tracing. A path that is cut still covers what it stood for.
const (
	maxPaths = 256     // alternatives of one value; above it they are cut to two names
	maxPath  = 32      // names in a path
	maxSteps = 200_000 // nodes visited, loops and named templates each time
)

func (v value) bounded() value {
	if len(v.paths) <= maxPaths && len(v.consts) <= maxPaths {
		return v
	}
	short := map[string][]string{}
	for _, p := range v.paths {
		p = p[:min(len(p), 2)]
		short[strings.Join(p, "\x00")] = p
	}
	out := value{}
	for _, key := range slices.Sorted(maps.Keys(short)) {
		out.paths = append(out.paths, short[key])
	}
	return out
}

// tracer walks a template as an evaluator would, taking every branch.
type tracer struct {
	src    string
	trees  map[string]*parse.Tree
	scopes []map[string]value
	calls  map[string]bool // named template and what dot is there: traced once
	seen   map[string]bool
	found  []Reference
	steps  int
	// reassigned counts the assignments to variables of outer blocks.
	reassigned int
}

func (t *tracer) node(node parse.Node, dot value) {
	if t.steps++; t.steps > maxSteps {
		return
	}
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, child := range n.Nodes {
			t.node(child, dot)
		}
	case *parse.ActionNode:
		v := t.pipe(n.Pipe, dot)
		if len(n.Pipe.Decl) == 0 {
			t.record(v, n.Pipe)
		}
	case *parse.IfNode:
		t.scoped(func() {
			t.record(t.pipe(n.Pipe, dot), n.Pipe)
			t.node(n.List, dot)
			t.node(n.ElseList, dot)
		})
	case *parse.WithNode:
		t.scoped(func() {
			v := t.pipe(n.Pipe, dot)
			t.record(v, n.Pipe)
			t.node(n.List, v)
			t.node(n.ElseList, dot)
		})
	case *parse.RangeNode:
		t.scoped(func() { t.rangeOver(n, dot) })
	case *parse.TemplateNode:
		t.call(n, dot)
	}
}

func (t *tracer) scoped(body func()) {
	t.scopes = append(t.scopes, map[string]value{})
	body()
	t.scopes = t.scopes[:len(t.scopes)-1]
}

func (t *tracer) rangeOver(n *parse.RangeNode, dot value) {
	list := t.commands(n.Pipe, dot)
	t.record(list, n.Pipe)
	element := list.below(Any)
	for i, decl := range n.Pipe.Decl {
		if i == len(n.Pipe.Decl)-1 {
			t.assign(decl.Ident[0], element, n.Pipe.IsAssign)
		} else {
			t.assign(decl.Ident[0], value{}, n.Pipe.IsAssign)
		}
	}
	before := t.reassigned
	t.node(n.List, element)
	if t.reassigned > before { // what a turn sets is read in the next
		t.node(n.List, element)
	}
	t.node(n.ElseList, dot)
}

func (t *tracer) call(n *parse.TemplateNode, dot value) {
	arg := value{}
	if n.Pipe != nil {
		arg = t.pipe(n.Pipe, dot)
		t.record(arg, n.Pipe)
	}
	tree := t.trees[n.Name]
	key := n.Name
	for _, p := range arg.paths {
		key += "\x00" + strings.Join(p, "\x01")
	}
	if tree == nil || t.calls[key] {
		return
	}
	t.calls[key] = true
	outer := t.scopes
	t.scopes = []map[string]value{{"$": arg}}
	t.node(tree.Root, arg)
	t.scopes = outer
}

func (t *tracer) pipe(n *parse.PipeNode, dot value) value {
	v := t.commands(n, dot)
	for _, decl := range n.Decl {
		t.assign(decl.Ident[0], v, n.IsAssign)
	}
	return v
}

func (t *tracer) commands(n *parse.PipeNode, dot value) value {
	var final *value
	for _, cmd := range n.Cmds {
		v := t.command(cmd, dot, final).bounded()
		final = &v
	}
	if final == nil {
		return value{}
	}
	return *final
}

// assign declares a variable, or adds to what an outer one may be.
func (t *tracer) assign(name string, v value, existing bool) {
	if existing {
		for i := len(t.scopes) - 1; i >= 0; i-- {
			if old, ok := t.scopes[i][name]; ok {
				t.reassigned++
				t.scopes[i][name] = old.union(v).bounded()
				return
			}
		}
	}
	t.scopes[len(t.scopes)-1][name] = v
}

func (t *tracer) variable(name string) value {
	for i := len(t.scopes) - 1; i >= 0; i-- {
		if v, ok := t.scopes[i][name]; ok {
			return v
		}
	}
	return value{}
}

func (t *tracer) command(cmd *parse.CommandNode, dot value, final *value) value {
	args := make([]value, 0, len(cmd.Args))
	for _, arg := range cmd.Args[1:] {
		args = append(args, t.operand(arg, dot))
	}
	if final != nil {
		args = append(args, *final)
	}
	if ident, ok := cmd.Args[0].(*parse.IdentifierNode); ok {
		return t.function(ident.Ident, args, cmd)
	}
	for _, arg := range args { // a method call; the tree has none
		t.record(arg, cmd)
	}
	return t.operand(cmd.Args[0], dot)
}

func (t *tracer) operand(node parse.Node, dot value) value {
	switch n := node.(type) {
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		return dot.below(n.Ident...)
	case *parse.VariableNode:
		return t.variable(n.Ident[0]).below(n.Ident[1:]...)
	case *parse.ChainNode:
		return t.operand(n.Node, dot).below(n.Field...)
	case *parse.PipeNode:
		return t.pipe(n, dot)
	case *parse.StringNode:
		return value{consts: []string{n.Text}}
	case *parse.IdentifierNode:
		return t.function(n.Ident, nil, n)
	}
	return value{}
}

// function knows the functions that look into their arguments or hand one of
// them on. Any other reads its arguments and makes something new.
func (t *tracer) function(name string, args []value, node parse.Node) value {
	switch {
	case name == "index" && len(args) > 0:
		return t.follow(args[0], args[1:], node)
	case name == "get" && len(args) == 2, name == "hasKey" && len(args) == 2:
		return t.follow(args[0], args[1:], node)
	case name == "dig" && len(args) >= 3:
		keys, fallback, dict := args[:len(args)-2], args[len(args)-2], args[len(args)-1]
		return t.follow(dict, keys, node).union(fallback)
	case name == "pluck" && len(args) > 1:
		out := value{}
		for _, dict := range args[1:] {
			out = out.union(t.follow(dict, args[:1], node))
		}
		t.record(out, node)
		return value{}
	}
	for _, arg := range args {
		t.record(arg, node)
	}
	if name == "ternary" && len(args) == 3 {
		args = args[:2] // the third decides and is not handed on
	}
	switch name {
	case "default", "coalesce", "ternary", "and", "or":
		out := value{}
		for _, arg := range args {
			out = out.union(arg)
		}
		return out
	case "first", "mustFirst", "last", "mustLast":
		if len(args) == 1 {
			return args[0].below(Any)
		}
	}
	return value{}
}

func (t *tracer) follow(v value, keys []value, node parse.Node) value {
	for _, key := range keys {
		t.record(key, node)
		v = v.at(key).bounded()
	}
	return v
}

// record notes that a value is read.
func (t *tracer) record(v value, node parse.Node) {
	for _, p := range v.paths {
		ref := resolve(p)
		ref.Line, ref.Column = t.place(int(node.Position()))
		key := fmt.Sprintf("%s:%d", ref, ref.Line)
		if !t.seen[key] {
			t.seen[key] = true
			t.found = append(t.found, ref)
		}
	}
}

const pathLetters = ".$_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func (t *tracer) place(offset int) (line, column int) {
	offset = min(offset, len(t.src))
	for offset > 0 && strings.ContainsRune(pathLetters, rune(t.src[offset-1])) {
		offset-- // the parser points into the middle of a path
	}
	before := t.src[:offset]
	return strings.Count(before, "\n") + 1, len(before) - strings.LastIndexByte(before, '\n')
}
