package interpolate

import (
	"fmt"
	"slices"
	"strings"
)

// value is what a pipeline can be, as far as it is known without rendering:
// any of some paths, any of some constant strings, a list made of something
// known, or something else.
type value struct {
	paths  [][]string
	consts []string
	items  *value // what the elements are, when it is a list made in the template
	// computed is set when it can also be what nothing is known of.
	computed bool
}

func computed() value { return value{computed: true} }

func (v value) union(o value) value {
	out := value{paths: slices.Clone(v.paths), consts: slices.Clone(v.consts), computed: v.computed || o.computed}
	for _, p := range o.paths {
		if !slices.ContainsFunc(out.paths, func(q []string) bool { return slices.Equal(p, q) }) {
			out.paths = append(out.paths, p)
		}
	}
	for _, c := range o.consts {
		if !slices.Contains(out.consts, c) {
			out.consts = append(out.consts, c)
		}
	}
	switch {
	case v.items != nil && o.items != nil:
		items := v.items.union(*o.items)
		out.items = &items
	case v.items != nil:
		out.items = v.items
	default:
		out.items = o.items
	}
	return out
}

// same tells whether two values, one made from the other by union, are equal.
func (v value) same(o value) bool {
	if len(v.paths) != len(o.paths) || len(v.consts) != len(o.consts) || v.computed != o.computed || (v.items == nil) != (o.items == nil) {
		return false
	}
	return v.items == nil || v.items.same(*o.items)
}

// below follows names from every path of the value.
func (v value) below(names ...string) value {
	if len(names) == 0 {
		return v
	}
	out := value{computed: v.computed || v.items != nil || len(v.consts) > 0}
	for _, p := range v.paths {
		p = slices.Concat(p, names)
		out.paths = append(out.paths, p[:min(len(p), maxPath)])
	}
	return out
}

// elements is what a loop over the value, or a computed key, gives.
func (v value) elements() value {
	if v.items == nil {
		return v.below(Any)
	}
	items := *v.items
	v.items = nil
	if len(v.paths) == 0 && len(v.consts) == 0 && !v.computed {
		return items
	}
	return v.below(Any).union(items)
}

// at follows a key: its constants, or Any.
func (v value) at(key value) value {
	if key.computed || key.items != nil || len(key.paths) > 0 || len(key.consts) == 0 {
		return v.elements()
	}
	out := value{}
	for _, name := range key.consts {
		out = out.union(v.below(name))
	}
	return out
}

// Limits on the tracing. A path that is cut still covers what it stood for.
const (
	maxPaths = 32      // alternatives of one value; above it they are cut to two names
	maxPath  = 16      // names in a path
	maxSteps = 100_000 // nodes visited, loops and named templates each time, and paths followed
	maxCalls = 50      // named templates inside each other that are followed with arguments of their own
)

func (v value) bounded() value {
	if v.items != nil {
		items := v.items.bounded()
		if items.items != nil && items.items.items != nil {
			items = computed().union(value{paths: items.paths, consts: items.consts})
		}
		v.items = &items
	}
	if len(v.consts) > maxPaths {
		v.consts, v.computed = nil, true
	}
	if len(v.paths) <= maxPaths {
		return v
	}
	for _, length := range []int{2, 0} {
		var short [][]string
		for _, p := range v.paths {
			p = p[:min(len(p), length)]
			if !slices.ContainsFunc(short, func(q []string) bool { return slices.Equal(p, q) }) {
				short = append(short, p)
			}
		}
		if v.paths = short; len(short) <= maxPaths {
			return v
		}
	}
	return v
}

// covers tells whether every path of o is at or below one of v.
func (v value) covers(o value) bool {
	for _, p := range o.paths {
		if !slices.ContainsFunc(v.paths, func(q []string) bool { return len(q) <= len(p) && slices.Equal(q, p[:len(q)]) }) {
			return false
		}
	}
	return o.items == nil
}

// key is a text that two values share only when they are the same.
func (v value) key() string {
	var b strings.Builder
	for _, p := range v.paths {
		b.WriteString(strings.Join(p, "\x01"))
		b.WriteByte(0)
	}
	fmt.Fprintf(&b, "%q %v", v.consts, v.computed)
	if v.items != nil {
		b.WriteString(v.items.key())
	}
	return b.String()
}
