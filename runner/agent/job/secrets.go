package job

import (
	"bytes"
	"slices"
	"strconv"
	"sync"

	"github.com/berth-dev/berth/pkg/redact"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/runner/agent/manifestsecrets"
)

// secrets are what must not be seen of an attempt. It is a redactor of its log.
// Safe for concurrent use.
type secrets struct {
	set *redact.Set

	mu    sync.Mutex
	known map[string]bool
}

func newSecrets() *secrets { return &secrets{set: redact.New(), known: map[string]bool{}} }

// add registers every text in value, and says whether any was new.
func (s *secrets) add(value any, name string) (fresh bool) {
	manifestsecrets.Texts(value, func(text string) {
		if len(text) < redact.MinLen {
			return
		}
		s.mu.Lock()
		seen := s.known[text]
		s.known[text] = true
		s.mu.Unlock()
		if !seen {
			s.set.Add([]byte(text), name)
			fresh = true
		}
	})
	return fresh
}

// shows reports whether data holds a secret.
func (s *secrets) shows(data []byte) bool { return !bytes.Equal(s.set.Bytes(data), data) }

// Bytes replaces secrets in output.
func (s *secrets) Bytes(raw []byte) []byte { return s.set.Bytes(raw) }

// Hold is how much at the end of raw may be the beginning of a secret, in any
// of its spellings.
func (s *secrets) Hold(raw []byte) int { return s.set.Hold(raw) }

// learnOpened calls learn with what was sealed in before and is in clear in
// after, and its path below path.
func learnOpened(before, after any, path []string, learn func(path []string, value any)) {
	if !seal.HasSealed(before) {
		return
	}
	switch b := before.(type) {
	case map[string]any:
		if a, ok := after.(map[string]any); ok && !isLeaf(b) {
			for key := range b {
				learnOpened(b[key], a[key], append(slices.Clip(path), key), learn)
			}
			return
		}
	case []any:
		if a, ok := after.([]any); ok && len(a) == len(b) {
			for i := range b {
				learnOpened(b[i], a[i], append(slices.Clip(path), strconv.Itoa(i)), learn)
			}
			return
		}
	}
	if !seal.HasSealed(after) { // else it was not named
		learn(path, after)
	}
}

// isLeaf reports whether the object is itself a sealed value.
func isLeaf(m map[string]any) bool {
	for _, child := range m {
		if seal.HasSealed(child) {
			return false
		}
	}
	return true
}
