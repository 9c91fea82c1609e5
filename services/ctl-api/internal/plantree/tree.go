// Package plantree makes one tree of every engine's plan: modules or groups, in
// them objects, in them attributes. It reads what people are shown of a plan
// (jobspec.PlanSummary), so it can show nothing that is hidden there.
//
//	Terraform, OpenTofu  module.net["a"].aws_vpc.main[0]      modules net["a"]; aws_vpc, main[0]
//	charts, manifests    Deployment.apps shop/web             group shop; Deployment.apps, web
//	Pulumi               my:Net$aws:ec2/vpc:Vpc::main         group my:Net; aws:ec2/vpc:Vpc, main
//	actions              nightly/backup                       group nightly; backup
package plantree

import (
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// Kind is what a node is.
type Kind string

// The kinds.
const (
	Module    Kind = "module" // or a group: a namespace, a parent, an action
	Resource  Kind = "resource"
	Attribute Kind = "attribute"
)

// unknown is what engines write in the place of a value that only the apply makes.
const unknown = "(known after apply)"

// Node is a node of the tree. Type, Action and Reason are those of a resource;
// Address is as the tool writes it. Before and After are JSON; empty for an
// absent value and for what is known after the apply. Of a Hidden one they are what stands
// for it (jobspec.IsSensitive).
type Node struct {
	Kind                                Kind
	Name, Type, Address, Action, Reason string
	Before, After                       string
	Hidden, KnownAfterApply             bool
	Children                            []*Node
}

// Of makes the tree of a plan's objects, in the order in which they are planned.
// The same plan gives the same tree.
func Of(objects []jobspec.ObjectChange) []*Node {
	root := &Node{}
	for _, o := range objects {
		at := placeOf(o.Address)
		parent := root
		for _, m := range at.modules {
			parent = parent.module(m)
		}
		parent.Children = append(parent.Children, &Node{
			Kind: Resource, Name: at.name, Type: at.kind, Address: o.Address, Action: o.Action, Reason: o.Reason, Children: Attributes(o.Fields),
		})
	}
	return root.Children
}

// Attributes are fields as nodes.
func Attributes(fields []jobspec.FieldChange) []*Node {
	var out []*Node
	for _, f := range fields {
		n := &Node{Kind: Attribute, Name: f.Path, Before: f.Before, After: f.After}
		_, hides := jobspec.IsSensitive(f.Before)
		_, alsoHides := jobspec.IsSensitive(f.After)
		if n.Hidden = hides || alsoHides; n.Hidden {
			n.Before, n.After = hidden(f.Before), hidden(f.After)
		}
		if f.After == unknown {
			n.KnownAfterApply, n.After = true, ""
		}
		if f.Before == unknown {
			n.Before = ""
		}
		out = append(out, n)
	}
	return out
}

// hidden is what is shown of a value of an attribute that hides one of its two.
func hidden(value string) string {
	if _, stands := jobspec.IsSensitive(value); stands || value == "" || value == unknown {
		return value
	}
	return jobspec.Sensitive
}

// module finds or makes the module below n.
func (n *Node) module(m module) *Node {
	for _, c := range n.Children {
		if c.Kind == Module && c.Address == m.address {
			return c
		}
	}
	made := &Node{Kind: Module, Name: m.name, Address: m.address}
	n.Children = append(n.Children, made)
	return made
}

// module is one step of the way to an object; address is the way to here.
type module struct{ name, address string }

// place is where an object stands in the tree.
type place struct {
	modules    []module
	kind, name string
}

// placeOf reads an address. One of no known form is an object without modules.
func placeOf(address string) place {
	head, _, _ := strings.Cut(address, "[") // an index may hold anything
	space, slash := strings.Index(head, " "), strings.Index(head, "/")
	switch {
	case strings.Contains(head, "::"):
		return ofPulumi(address)
	case slash >= 0 && (space < 0 || slash < space):
		return ofAction(address)
	case space >= 0:
		return ofObject(address)
	case strings.Contains(head, "."):
		return ofTerraform(address)
	}
	return place{name: address}
}

func ofTerraform(address string) place {
	parts := splitDots(address)
	var p place
	var way []string
	for len(parts) > 2 && parts[0] == "module" {
		way = append(way, parts[0], parts[1])
		p.modules = append(p.modules, module{parts[1], strings.Join(way, ".")})
		parts = parts[2:]
	}
	if len(parts) < 2 {
		p.name = strings.Join(parts, ".")
		return p
	}
	last := len(parts) - 1 // data.aws_ami.x: the type is data.aws_ami
	p.kind, p.name = strings.Join(parts[:last], "."), parts[last]
	return p
}

// splitDots splits at dots that are not in an index.
func splitDots(text string) []string {
	var parts []string
	begin, inside, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[':
			inside++
		case c == ']':
			inside--
		case c == '.' && inside == 0:
			parts = append(parts, text[begin:i])
			begin = i + 1
		}
	}
	return append(parts, text[begin:])
}

// ofObject reads "Kind.group namespace/name" and "Kind name".
func ofObject(address string) place {
	kind, rest, _ := strings.Cut(address, " ")
	p := place{kind: kind, name: rest}
	if namespace, name, ok := strings.Cut(rest, "/"); ok {
		p.modules, p.name = []module{{namespace, namespace}}, name
	}
	return p
}

func ofPulumi(address string) place {
	types, name, _ := strings.Cut(address, "::")
	parents := strings.Split(types, "$")
	p := place{kind: parents[len(parents)-1], name: name}
	for i, parent := range parents[:len(parents)-1] {
		p.modules = append(p.modules, module{parent, strings.Join(parents[:i+1], "$")})
	}
	return p
}

func ofAction(address string) place {
	action, step, _ := strings.Cut(address, "/")
	return place{modules: []module{{action, action}}, name: step}
}
