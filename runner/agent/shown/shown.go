// Package shown makes of a plan what is sent to be shown of it.
package shown

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// Limit bounds what is sent of a plan, in bytes of encoded text. What is
// longer does not fit into one report (16 MiB), and nobody reads it.
const Limit = 8 << 20

// Of is a plan as it is sent to be shown: all of it, up to a limit. Of a
// longer one the tool's own text goes first, then the values of the last objects,
// then these objects; NotShownBytes says how much that is, and so does the text
// in each place. The counts stay those of the whole plan.
func Of(whole jobspec.PlanSummary, limit int) jobspec.PlanSummary {
	s, left := whole, budget{left: limit}
	counts := whole.Counts()
	s.Create, s.Update, s.Replace, s.Delete = counts.Create, counts.Update, counts.Replace, counts.Delete
	s.Objects, s.Outputs = nil, nil
	for i, o := range whole.Objects {
		if !left.takes(o.Address, o.Action) {
			for _, o := range whole.Objects[i:] {
				left.drop(o)
			}
			break
		}
		o.Reason = left.text(o.Reason)
		o.Fields = left.fields(o.Fields)
		s.Objects = append(s.Objects, o)
	}
	s.Outputs = left.fields(whole.Outputs)
	s.Text = left.text(whole.Text)
	s.NotShownBytes = left.dropped
	return s
}

// Counts is a plan whose details do not leave. Nor does the footprint: the effect digest
// covers it, and the customer's side shows it.
func Counts(whole jobspec.PlanSummary) jobspec.PlanSummary {
	s := Of(whole, 0)
	s.Footprint = nil
	return s
}

// Bare says whether a summary shows counts only, as Counts makes it.
func Bare(s jobspec.PlanSummary) bool {
	bare := func(text string) bool { return text == "" || strings.HasPrefix(text, "… (") }
	return s.Footprint == nil && len(s.Objects) == 0 && bare(s.Text) &&
		!slices.ContainsFunc(s.Outputs, func(f jobspec.FieldChange) bool { return !bare(f.Path) })
}

// budget is how much may still be shown, and how much was not.
type budget struct {
	left    int
	dropped int64
}

// fieldCost is for the names and punctuation around a field or an object.
const fieldCost = 64

// takes spends what texts cost; false when there is not that much left.
func (b *budget) takes(texts ...string) bool {
	cost := fieldCost
	for _, text := range texts {
		cost += encodedLen(text)
	}
	if cost > b.left {
		b.left = 0
		return false
	}
	b.left -= cost
	return true
}

// text is as much of a text as there is room for.
func (b *budget) text(text string) string {
	if cost := encodedLen(text); cost <= b.left {
		b.left -= cost
		return text
	}
	end := 0
	for end < len(text) {
		_, size := utf8.DecodeRuneInString(text[end:])
		cost := encodedLen(text[end : end+size])
		if cost > b.left {
			break
		}
		b.left -= cost
		end += size
	}
	b.left = 0
	b.dropped += int64(len(text) - end)
	return fmt.Sprintf("%s… (%d bytes not shown)", text[:end], len(text)-end)
}

func (b *budget) fields(whole []jobspec.FieldChange) []jobspec.FieldChange {
	var fields []jobspec.FieldChange
	for i, f := range whole {
		if !b.takes(f.Path) {
			for _, f := range whole[i:] {
				b.dropped += int64(len(f.Path) + len(f.Before) + len(f.After))
			}
			return append(fields, jobspec.FieldChange{Path: fmt.Sprintf("… (%d fields not shown)", len(whole)-i)})
		}
		f.Before, f.After = b.text(f.Before), b.text(f.After)
		fields = append(fields, f)
	}
	return fields
}

func (b *budget) drop(o jobspec.ObjectChange) {
	b.dropped += int64(len(o.Address) + len(o.Action) + len(o.Reason))
	for _, f := range o.Fields {
		b.dropped += int64(len(f.Path) + len(f.Before) + len(f.After))
	}
}

// encodedLen is at least how long a text is as JSON.
func encodedLen(text string) int {
	const escaped = len(`\u0000`)
	n := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r < ' ', r == utf8.RuneError && size == 1, r == '<', r == '>', r == '&', r == '\u2028', r == '\u2029':
			n += escaped
		case r == '"', r == '\\':
			n += 2
		default:
			n += size
		}
		i += size
	}
	return n
}
