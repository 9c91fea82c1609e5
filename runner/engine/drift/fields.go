package drift

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/pkg/visible"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// Bounds of what is read of managedFields, which anybody in the cluster may
// write. The API server itself keeps ten writers and a few appliers.
const (
	maxEntries = 64      // owners has a bit for each
	maxDepth   = 64      // of fields below each other
	maxNodes   = 200_000 // an object has 1.5 MiB at most
	maxKey     = 4096    // bytes of the key of a list item
	maxName    = 128     // bytes of a manager's name, as the API server has it
)

// owners is a set of entries, a bit for each.
type owners uint64

// entry is one of managedFields.
type entry struct {
	manager, operation, subresource string
	time                            *time.Time
}

// node is a field with its owners.
type node struct {
	own   owners // of the field itself
	whole owners // of the field with all that is below it
	// below are fields by name (".image") and items of lists ([name="web"],
	// [="value"]): the ends of paths.
	below map[string]*node
	keys  []string // the fields that tell items of this list apart
	set   bool     // it is a list of values
}

// managed are all of managedFields in one tree.
type managed struct {
	root    node
	entries []entry
	// Entries of Berth: all of them, and those of server-side apply, which own
	// exactly what was sent.
	berth, applied owners
	status         map[string]bool // managers that write the status of the object
	nodes          int
	broken         string // why not all of it could be read
}

// read reads managedFields of the live object.
func read(live *unstructured.Unstructured) *managed {
	m := &managed{status: map[string]bool{}}
	list := managedFields(live)
	if len(list) == 0 {
		m.broken = "the object has no managedFields"
	}
	if len(list) > maxEntries {
		list, m.broken = list[:maxEntries], "managedFields have too many entries"
	}
	for i, item := range list {
		found, _ := item.(map[string]any)
		e := entry{manager: name(found["manager"]), operation: name(found["operation"]), subresource: name(found["subresource"])}
		if text, ok := found["time"].(string); ok {
			if at, err := time.Parse(time.RFC3339, text); err == nil {
				at = at.UTC()
				e.time = &at
			}
		}
		m.entries = append(m.entries, e)
		bit := owners(1) << i
		if e.manager == kube.FieldManager {
			m.berth |= bit
			if e.operation == "Apply" {
				m.applied |= bit
			}
		}
		if e.subresource == "status" {
			m.status[e.manager] = true
		}
		fields, ok := found["fieldsV1"].(map[string]any)
		if !ok {
			m.broken = "managedFields cannot be read"
			continue
		}
		m.add(&m.root, fields, bit, 0)
	}
	return m
}

// shape adds how lists look, from the answer to a dry run, without owners.
func (m *managed) shape(tried *unstructured.Unstructured) {
	for _, item := range managedFields(tried) {
		found, _ := item.(map[string]any)
		fields, _ := found["fieldsV1"].(map[string]any)
		m.add(&m.root, fields, 0, 0)
	}
}

func managedFields(obj *unstructured.Unstructured) []any {
	if obj == nil {
		return nil
	}
	metadata, _ := obj.Object["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	return list
}

func name(v any) string {
	text, _ := v.(string)
	return visible.Line(cut(text, maxName))
}

// add adds fields of one entry below n. A field with nothing below it is owned
// as a whole; "." stands for the field itself.
func (m *managed) add(n *node, fields map[string]any, by owners, depth int) {
	if depth > maxDepth {
		m.broken = "managedFields are too deep"
		return
	}
	for key, value := range fields {
		if m.nodes++; m.nodes > maxNodes {
			m.broken = "managedFields have too many fields"
			return
		}
		below, ok := value.(map[string]any)
		if key == "." {
			n.own |= by
			continue
		}
		kind, rest, _ := strings.Cut(key, ":")
		end := ""
		switch {
		case !ok:
		case kind == "f":
			end = "." + rest
		case kind == "k":
			end = n.keyed(rest)
		case kind == "v":
			n.set, end = true, valued(rest)
		}
		if end == "" {
			m.broken = "managedFields cannot be read"
			continue
		}
		next := n.below[end]
		if next == nil {
			if n.below == nil {
				n.below = map[string]*node{}
			}
			next = &node{}
			n.below[end] = next
		}
		if len(below) == 0 {
			next.own |= by
			next.whole |= by
		}
		m.add(next, below, by, depth+1)
	}
}

// keyed is the end of the path of an item, given as {"name":"web"}; "" for what
// cannot be read.
func (n *node) keyed(text string) string {
	var key map[string]any
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if len(text) > maxKey || dec.Decode(&key) != nil || len(key) == 0 {
		return ""
	}
	names := slices.Sorted(maps.Keys(key))
	if n.keys == nil {
		n.keys = names
	}
	if !slices.Equal(n.keys, names) {
		return ""
	}
	end, _ := keyOf(key, names)
	return end
}

// valued is the end of the path of a value, given as JSON; "" for what cannot be
// read.
func valued(text string) string {
	var v any
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if len(text) > maxKey || dec.Decode(&v) != nil {
		return ""
	}
	if value, ok := scalar(v); ok {
		return "[=" + value + "]"
	}
	return ""
}

// keyOf is the end of the path of an item of a list; whole is false when it
// lacks one of the fields that tell items apart.
func keyOf(item map[string]any, names []string) (end string, whole bool) {
	var b strings.Builder
	whole = true
	for _, name := range names {
		value, ok := scalar(item[name])
		if !ok {
			whole = false
			continue
		}
		b.WriteString(map[bool]string{true: "[", false: ","}[b.Len() == 0])
		b.WriteString(name + "=" + value)
	}
	if b.Len() == 0 {
		return "", false
	}
	return b.String() + "]", whole
}

// scalar is a value that may tell items apart, as JSON.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v), true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true // as a whole number is written
	case int64, int, json.Number:
		return fmt.Sprint(v), true
	}
	return "", false
}

func (n *node) at(end string) *node {
	if n == nil {
		return nil
	}
	return n.below[end]
}

// all are the owners of a field and of all that is below it.
func (n *node) all() owners {
	if n == nil {
		return 0
	}
	own := n.own
	for _, next := range n.below {
		own |= next.all()
	}
	return own
}

// each calls f with each entry of a set.
func (m *managed) each(set owners, f func(entry)) {
	for set != 0 {
		f(m.entries[bits.TrailingZeros64(uint64(set))])
		set &= set - 1
	}
}
