// Package tfstate says what the vendor may learn of a Terraform state that only the
// customer can open. The runner writes it next to the sealed bytes, and the control
// plane shows it as it came.
package tfstate

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Level is how much a runner tells of its states. The customer sets it.
type Level string

// The levels; each tells what those before it tell.
const (
	Counts     Level = "counts"     // how many resources there are of each type
	Addresses  Level = "addresses"  // which ones: a plan shows their addresses too
	Attributes Level = "attributes" // their attributes and the outputs, but for sensitive values
)

// Levels are all of them, the one that tells least first.
func Levels() []Level { return []Level{Counts, Addresses, Attributes} }

// ParseLevel reads a setting of the runner; "" is Addresses.
func ParseLevel(text string) (Level, error) {
	if text == "" {
		return Addresses, nil
	}
	if l := Level(text); slices.Contains(Levels(), l) {
		return l, nil
	}
	return "", fmt.Errorf("%q is none of %v", text, Levels())
}

// MaxBytes is the most that a summary has as JSON: it is stored with each state, and
// shown whole.
const MaxBytes = 256 << 10

// Summary is what the vendor may learn of one state.
type Summary struct {
	// Resources counts the managed ones by type.
	Resources map[string]int `json:"resources"`
	// Bytes is the size of the sealed state.
	Bytes int64 `json:"bytes,omitempty"`
	Level Level `json:"level,omitempty"` // "" for a runner of an earlier version: Counts
	// Terraform is the version that wrote the state.
	Terraform string   `json:"terraform_version,omitempty"`
	Objects   []Object `json:"objects,omitempty"`
	// LeftOut is how many objects had no room.
	LeftOut int            `json:"left_out,omitempty"`
	Outputs map[string]any `json:"outputs,omitempty"`
}

// Object is one instance of a resource, or of a data source.
type Object struct {
	Address    string         `json:"address"`
	Tainted    bool           `json:"tainted,omitempty"`
	Attributes map[string]any `json:"attributes,omitempty"`
}

// Fit returns the summary as a level allows, within MaxBytes: attributes go first, then
// the last objects. What it leaves out is counted.
func (s Summary) Fit(level Level) Summary {
	s.Level = level
	switch level {
	case Attributes:
		if size(s) <= MaxBytes {
			return s
		}
		s.Level = Addresses
	case Addresses:
	case Counts:
		s.Objects = nil
	}
	s.Outputs, s.Objects = nil, slices.Clone(s.Objects)
	for i := range s.Objects {
		s.Objects[i].Attributes = nil
	}
	for size(s) > MaxBytes && len(s.Objects) > 0 {
		keep := len(s.Objects) / 2
		s.LeftOut += len(s.Objects) - keep
		s.Objects = s.Objects[:keep]
	}
	return s
}

func size(s Summary) int {
	raw, err := json.Marshal(s)
	if err != nil {
		return MaxBytes + 1
	}
	return len(raw)
}
