package interpolate

import (
	"fmt"
	"slices"
	"strings"
	"text/template/parse"
)

// tracer walks a template as an evaluator would, taking every branch.
type tracer struct {
	src    string
	trees  map[string]*parse.Tree
	scopes []map[string]value
	calls  map[string]bool // named template and what dot is there: traced once
	inside []call          // the named templates being traced
	seen   map[string]bool
	found  []Reference
	held   []held
	steps  int
	// changes counts the assignments that a variable did not hold before.
	changes int
}

// call is a named template with its argument.
type call struct {
	name string
	arg  value
}

// held is what a variable was given. When nothing below it is read, having
// looked it up is the read.
type held struct {
	v    value
	node parse.Node
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
		if len(n.Pipe.Decl) == 0 {
			t.read(t.commands(n.Pipe, dot), n.Pipe)
			return
		}
		v := t.commands(n.Pipe, dot)
		name := n.Pipe.Decl[0].Ident[0]
		// In the block of its declaration an assignment always happens, so what
		// was there is gone; anywhere else it may have happened.
		_, here := t.scopes[len(t.scopes)-1][name]
		t.assign(name, v, n.Pipe.IsAssign && !here)
		t.held = append(t.held, held{v, n.Pipe})
	case *parse.IfNode:
		t.scoped(func() {
			t.look(t.pipe(n.Pipe, dot), n.Pipe)
			t.node(n.List, dot)
			t.node(n.ElseList, dot)
		})
	case *parse.WithNode:
		t.scoped(func() {
			v := t.pipe(n.Pipe, dot)
			t.look(v, n.Pipe)
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
	t.read(list, n.Pipe)
	element := list.elements()
	for before := -1; before != t.changes && t.steps <= maxSteps; { // what a turn sets is read in the next
		before = t.changes
		for i, decl := range n.Pipe.Decl {
			if i == len(n.Pipe.Decl)-1 {
				t.assign(decl.Ident[0], element, n.Pipe.IsAssign)
			} else {
				t.assign(decl.Ident[0], computed(), n.Pipe.IsAssign)
			}
		}
		t.scoped(func() { t.node(n.List, element) })
	}
	t.node(n.ElseList, dot)
}

func (t *tracer) call(n *parse.TemplateNode, dot value) {
	arg := value{computed: true}
	if n.Pipe != nil {
		arg = t.pipe(n.Pipe, dot)
		t.look(arg, n.Pipe)
	}
	tree := t.trees[n.Name]
	if tree == nil {
		return
	}
	// A template that calls itself walks into its argument. From the second
	// time on all below the argument counts as read, and the walk ends.
	again := slices.ContainsFunc(t.inside, func(c call) bool { return c.name == n.Name })
	if again || len(t.inside) > maxCalls {
		t.read(arg, n)
		for _, c := range t.inside {
			if c.name == n.Name && !c.arg.covers(arg) {
				again = false
			}
		}
		if again || len(t.inside) > maxCalls {
			return
		}
	}
	key := n.Name + "\x02" + arg.key()
	if t.calls[key] {
		return
	}
	t.calls[key] = true
	outer := t.scopes
	t.scopes = []map[string]value{{"$": arg}}
	t.inside = append(t.inside, call{n.Name, arg})
	t.node(tree.Root, arg)
	t.inside = t.inside[:len(t.inside)-1]
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
		return computed()
	}
	return *final
}

// assign declares a variable, or adds to what an outer one may be.
func (t *tracer) assign(name string, v value, existing bool) {
	if existing {
		for i := len(t.scopes) - 1; i >= 0; i-- {
			if old, ok := t.scopes[i][name]; ok {
				joined := old.union(v).bounded()
				if !joined.same(old) {
					t.changes++
				}
				t.scopes[i][name] = joined
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
	return computed()
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
	for _, arg := range args { // a method call: nothing of the tree has any
		t.read(arg, cmd)
	}
	return t.operand(cmd.Args[0], dot)
}

func (t *tracer) operand(node parse.Node, dot value) value {
	if t.steps++; t.steps > maxSteps {
		return computed()
	}
	var v value
	switch n := node.(type) {
	case *parse.DotNode:
		v = dot
	case *parse.FieldNode:
		v = dot.below(n.Ident...)
	case *parse.VariableNode:
		v = t.variable(n.Ident[0]).below(n.Ident[1:]...)
	case *parse.ChainNode:
		v = t.operand(n.Node, dot).below(n.Field...)
	case *parse.PipeNode:
		v = t.pipe(n, dot)
		if len(n.Decl) > 0 {
			t.held = append(t.held, held{v, n})
		}
	case *parse.StringNode:
		return value{consts: []string{n.Text}}
	case *parse.IdentifierNode:
		return t.function(n.Ident, nil, n)
	default:
		return computed()
	}
	t.steps += len(v.paths)
	return v
}

// function knows the functions that look into their arguments or hand one of
// them on. Any other reads its arguments and makes something new.
func (t *tracer) function(name string, args []value, node parse.Node) value {
	if found, ok := t.lookup(name, args, node); ok {
		return found
	}
	switch name {
	case "default", "coalesce", "ternary", "and", "or", "not", "empty":
		for _, arg := range args {
			t.look(arg, node)
		}
	default:
		for _, arg := range args {
			t.read(arg, node)
		}
	}
	return result(name, args)
}

// lookup follows the functions that take an argument apart; not ok for others.
func (t *tracer) lookup(name string, args []value, node parse.Node) (found value, ok bool) {
	switch {
	case name == "index" && len(args) > 0, name == "get" && len(args) == 2:
		return t.follow(args[0], args[1:], node), true
	case name == "hasKey" && len(args) == 2:
		t.look(t.follow(args[0], args[1:], node), node)
		return computed(), true
	case name == "dig" && len(args) >= 3:
		keys, fallback, dict := args[:len(args)-2], args[len(args)-2], args[len(args)-1]
		return t.follow(dict, keys, node).union(fallback), true
	case name == "pluck" && len(args) > 1:
		items := value{}
		for _, dict := range args[1:] {
			items = items.union(t.follow(dict, args[:1], node))
		}
		t.read(items, node)
		return value{items: &items}, true
	}
	return value{}, false
}

// result is what a function hands on of its arguments.
func result(name string, args []value) value {
	if name == "ternary" && len(args) == 3 {
		args = args[:2] // the third decides and is not handed on
	}
	switch name {
	case "default", "coalesce", "ternary", "and", "or":
		out := value{}
		for _, arg := range args {
			out = out.union(arg)
		}
		out.computed = out.computed || name == "coalesce" // it is null when all are empty
		return out
	case "list", "tuple":
		items := value{}
		for _, arg := range args {
			items = items.union(arg)
		}
		return value{items: &items}
	case "first", "mustFirst", "last", "mustLast":
		if len(args) == 1 {
			return args[0].elements()
		}
	}
	return computed()
}

func (t *tracer) follow(v value, keys []value, node parse.Node) value {
	for _, key := range keys {
		t.read(key, node)
		v = v.at(key).bounded()
	}
	return v
}

// read notes that a value is read, with everything below it.
func (t *tracer) read(v value, node parse.Node) { t.record(v, node, true) }

// look notes that the template looks at a value: whether it exists and is
// empty.
func (t *tracer) look(v value, node parse.Node) { t.record(v, node, false) }

func (t *tracer) record(v value, node parse.Node, whole bool) {
	if v.items != nil {
		t.record(*v.items, node, whole)
	}
	if len(v.paths) == 0 {
		return
	}
	line, column := pathStart(t.src, int(node.Position()))
	for _, p := range v.paths {
		t.steps++
		seen := fmt.Sprint(line, whole) + strings.Join(p, "\x01")
		if t.seen[seen] {
			continue
		}
		t.seen[seen] = true
		for _, ref := range resolve(p, whole) {
			ref.Line, ref.Column = line, column
			key := fmt.Sprintf("%s:%d:%v", ref, ref.Line, ref.Legacy)
			if !t.seen[key] {
				t.seen[key] = true
				t.found = append(t.found, ref)
			}
		}
	}
}

// recordHeld adds what variables were given and nobody read on from.
func (t *tracer) recordHeld() {
	for _, h := range t.held {
		unread := value{}
		for _, p := range h.v.paths {
			t.steps += len(t.found)
			if t.steps > maxSteps {
				return
			}
			at := resolve(p, false)[0]
			if !slices.ContainsFunc(t.found, func(r Reference) bool {
				return r.Root == at.Root && len(r.Path) >= len(at.Path) && slices.Equal(r.Path[:len(at.Path)], at.Path)
			}) {
				unread.paths = append(unread.paths, p)
			}
		}
		t.look(unread, h.node)
	}
}

const pathLetters = ".$_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// pathStart is where the path begins that an offset is in: the parser points
// into the middle.
func pathStart(src string, offset int) (line, column int) {
	offset = min(offset, len(src))
	for offset > 0 && strings.IndexByte(pathLetters, src[offset-1]) >= 0 {
		offset--
	}
	return place(src, offset)
}
