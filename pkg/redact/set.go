package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/berth-dev/berth/pkg/weakened"
)

// Set is a growing set of secrets. Safe for concurrent use.
type Set struct {
	current atomic.Pointer[automaton]

	mu       sync.Mutex
	known    map[string]bool
	patterns []pattern
}

// New returns a Set with the given secrets, without names. See Add.
func New(secrets ...[]byte) *Set {
	s := &Set{known: map[string]bool{}}
	for _, secret := range secrets {
		s.Add(secret, "")
	}
	return s
}

// Add puts a secret into the set. With a name it is replaced by
// "(redacted:name)", else by "(redacted)"; the name is shown, so it must not
// be secret. A secret shorter than MinLen is not looked for in text. Adding
// one again changes nothing.
func (s *Set) Add(secret []byte, name string) {
	if len(secret) < MinLen || weakened.Is(weakened.Redaction) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[string(secret)] {
		return
	}
	s.known[string(secret)] = true
	for _, form := range forms(secret) {
		s.patterns = append(s.patterns, pattern{text: form, name: name})
	}
	s.current.Store(nil) // built again by the next who needs it
}

// Bytes returns data with all secrets replaced. data is not changed.
func (s *Set) Bytes(data []byte) []byte { return s.automaton().replace(data) }

// String returns text with all secrets replaced.
func (s *Set) String(text string) string { return string(s.Bytes([]byte(text))) }

// Field returns a copy of a JSON tree in which the value of each key in names
// (in any case) is replaced whole, whatever its length, and all other text,
// keys and numbers too, is searched for secrets. Structs come back as maps.
func (s *Set) Field(v any, names ...string) any {
	switch node := v.(type) {
	case nil, bool:
		return v
	case string:
		return s.String(node)
	case map[string]any:
		out := make(map[string]any, len(node))
		for key, child := range node {
			if slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, key) }) {
				out[s.String(key)] = replacement("")
			} else {
				out[s.String(key)] = s.Field(child, names...)
			}
		}
		return out
	case []any:
		out := make([]any, len(node))
		for i, child := range node {
			out[i] = s.Field(child, names...)
		}
		return out
	case json.Number, float64, int, int64:
		text := fmt.Sprint(node)
		if clean := s.String(text); clean != text {
			return clean
		}
		return v
	default:
		raw, err := json.Marshal(v)
		if err != nil {
			return replacement("") // cannot be searched: show nothing
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var tree any
		if err := d.Decode(&tree); err != nil {
			return replacement("")
		}
		return s.Field(tree, names...)
	}
}

// automaton returns the one for all secrets of now. Building is put off until
// it is needed, so that registering many secrets builds it once.
func (s *Set) automaton() *automaton {
	if a := s.current.Load(); a != nil {
		return a
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.current.Load(); a != nil {
		return a
	}
	a := build(s.patterns)
	s.current.Store(a)
	return a
}
