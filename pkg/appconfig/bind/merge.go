package bind

import (
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// MaxIncludes is how many files one block may merge in, one through the other.
const MaxIncludes = 8

// Included merges the file that `source` names into a table: what the table
// says itself wins, tables are merged key by key, lists are not. A source that
// stands elsewhere and is not fetched is left in place; partial is true then,
// since the block's other keys are not known.
func (b *Binder) Included(at place.Place, values map[string]any) (merged map[string]any, partial bool) {
	var chain []string // the files so far
	if at.Key == "" {
		chain = append(chain, at.File)
	}
	for range MaxIncludes {
		source, ok := values["source"].(string)
		if !ok || source == "" {
			return values, false
		}
		rest := maps.Clone(values)
		delete(rest, "source")
		other, ok := b.Include(at.Below("source"), source)
		switch {
		case !ok && fetch.IsAddress(source):
			b.Lost = append(b.Lost, at.Below("source"))
			return values, true
		case !ok:
			return rest, true
		case other == nil:
			if f := (fetch.Wanted{At: at.Below("source"), Address: source, Include: true}); !slices.Contains(b.Wanted, f) {
				b.Wanted = append(b.Wanted, f)
			}
			return values, true
		}
		twice := slices.Contains(chain, other.File)
		if chain = append(chain, other.File); twice {
			b.Add(place.Error, place.CodeCycle, at.Below("source"), "files merge each other in: %s", strings.Join(chain, " → "))
			return rest, true
		}
		for _, key := range slices.Sorted(maps.Keys(other.Positions)) {
			to := at
			if key != "" {
				to = at.Below(key)
			}
			// The next file is named by this one, and no longer by the one before.
			if _, taken := b.Origin.Positions[to.ID()]; !taken || key == "source" {
				pos := other.Positions[key]
				pos.File = other.File
				b.Origin.Positions[to.ID()] = pos
			}
		}
		values = mergeTables(rest, other.Values)
	}
	b.Add(place.Error, place.CodeLimit, at.Below("source"), "more than %d files are merged in one through the other", MaxIncludes)
	values = maps.Clone(values)
	delete(values, "source")
	return values, true
}

// mergeTables adds what is missing in a table from another one.
func mergeTables(own, other map[string]any) map[string]any {
	out := maps.Clone(own)
	for key, value := range other {
		mine, taken := out[key]
		if !taken {
			out[key] = value
			continue
		}
		a, ok := mine.(map[string]any)
		if b, both := value.(map[string]any); ok && both {
			out[key] = mergeTables(a, b)
		}
	}
	return out
}
