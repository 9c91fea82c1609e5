package interpolate

import (
	"slices"
	"text/template/parse"
)

// walk calls visit for a node and everything below it, parents first.
func walk(node parse.Node, visit func(parse.Node)) {
	visit(node)
	branch := func(b *parse.BranchNode) {
		walk(b.Pipe, visit)
		walk(b.List, visit)
		if b.ElseList != nil {
			walk(b.ElseList, visit)
		}
	}
	switch n := node.(type) {
	case *parse.ListNode:
		for _, child := range slices.Clone(n.Nodes) {
			walk(child, visit)
		}
	case *parse.ActionNode:
		walk(n.Pipe, visit)
	case *parse.TemplateNode:
		if n.Pipe != nil {
			walk(n.Pipe, visit)
		}
	case *parse.PipeNode:
		for _, cmd := range n.Cmds {
			walk(cmd, visit)
		}
	case *parse.CommandNode:
		for _, arg := range n.Args {
			walk(arg, visit)
		}
	case *parse.ChainNode:
		walk(n.Node, visit)
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	}
}

// usesAny tells whether a template calls one of the functions.
func usesAny(trees map[string]*parse.Tree, names []string) bool {
	found := false
	for _, tree := range trees {
		if tree.Root == nil {
			continue
		}
		walk(tree.Root, func(node parse.Node) {
			if ident, ok := node.(*parse.IdentifierNode); ok && slices.Contains(names, ident.Ident) {
				found = true
			}
		})
	}
	return found
}
