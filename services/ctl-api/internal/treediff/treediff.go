// Package treediff says what differs between two JSON trees: which paths were added,
// removed and changed. Sealed leaves stay closed. It does no I/O.
package treediff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/pkg/seal"
)

// Op is what became of a path.
type Op string

// The values of Op.
const (
	Added    Op = "added"
	Removed  Op = "removed"
	Changed  Op = "changed"
	Replaced Op = "replaced" // a sealed value by another one; nobody here can compare them
)

// Change is one path that differs. Old and New are JSON; a sealed value is shown as
// "(sealed)", and there is none for what was not there.
type Change struct {
	Path     string
	Op       Op
	Old, New json.RawMessage
}

// Compare lists what differs, by path. A path has names with dots between, and
// brackets around one that has dots itself and around places in a list.
func Compare(before, after json.RawMessage) ([]Change, error) {
	was, err := decode(before)
	if err != nil {
		return nil, err
	}
	is, err := decode(after)
	if err != nil {
		return nil, err
	}
	var found []Change
	walk(&found, "", was, is)
	return found, nil
}

func decode(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return map[string]any{}, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // a large number stays what it is
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("read tree: %w", err)
	}
	return v, nil
}

func walk(found *[]Change, path string, was, is any) {
	before, wasMap := was.(map[string]any)
	after, isMap := is.(map[string]any)
	if !wasMap || !isMap || seal.IsSealed(was) || seal.IsSealed(is) {
		leaf(found, path, was, is)
		return
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(before)), maps.Keys(after))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		below := join(path, name)
		old, had := before[name]
		now, has := after[name]
		switch {
		case !had:
			each(below, now, func(path string, v any) {
				*found = append(*found, Change{Path: path, Op: Added, New: shown(v)})
			})
		case !has:
			each(below, old, func(path string, v any) {
				*found = append(*found, Change{Path: path, Op: Removed, Old: shown(v)})
			})
		default:
			walk(found, below, old, now)
		}
	}
}

// leaf compares two values of which one at least has nothing below it.
func leaf(found *[]Change, path string, was, is any) {
	a, b := text(was), text(is)
	if bytes.Equal(a, b) {
		return
	}
	op := Changed
	if seal.IsSealed(was) && seal.IsSealed(is) {
		op = Replaced
	}
	*found = append(*found, Change{Path: path, Op: op, Old: shown(was), New: shown(is)})
}

// each calls fn for every leaf; an empty object is one.
func each(path string, v any, fn func(path string, v any)) {
	m, ok := v.(map[string]any)
	if !ok || len(m) == 0 || seal.IsSealed(v) {
		fn(path, v)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		each(join(path, name), m[name], fn)
	}
}

// shown is a value as people may see it.
func shown(v any) json.RawMessage { return text(seal.RedactLeaves(v)) }

func text(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(strconv.Quote(seal.Redacted)) // cannot be: it was JSON
	}
	return raw
}

func join(path, name string) string {
	switch {
	case name == "" || strings.ContainsAny(name, ".[]"):
		return path + "[" + name + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

// Sort puts changes in the order of their paths.
func Sort(changes []Change) {
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
}
