package foresight

import (
	"slices"

	"github.com/berth-dev/berth/services/internal/model"
)

// Known is what a preview knows of a source by the time that something reads it.
// The zero value is one that the preview leaves as it is.
type Known struct {
	// Changes: the preview's plan for it changes something, or is not made yet.
	Changes bool
	// Exact: the plan lists every output that it changes, in Outputs. Otherwise each
	// of them may change.
	Exact   bool
	Outputs []string
	// There are the outputs that it has now; Live is false for a source that is not
	// there at all.
	Live  bool
	There []string
}

// Of says which reads a preview cannot see through, in their order. With one that
// is absent nothing can be planned.
func Of(reads []Read, known map[Source]Known) []model.MayChange {
	var found []model.MayChange
	for _, r := range reads {
		k := known[r.Source]
		if !k.Changes {
			continue
		}
		absent := !k.Live || r.Output != "" && !slices.Contains(k.There, r.Output)
		if !absent && k.Exact && r.Output != "" && !slices.Contains(k.Outputs, r.Output) {
			continue
		}
		found = append(found, model.MayChange{Reads: r.String(), Of: r.Source.String(), Absent: absent})
	}
	return found
}

// Blind says whether one of the reads is of something that is not there yet.
func Blind(found []model.MayChange) bool {
	return slices.ContainsFunc(found, func(m model.MayChange) bool { return m.Absent })
}
