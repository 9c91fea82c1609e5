package names

import (
	"fmt"
	"strings"

	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/id"
)

// Thing is something that can be meant.
type Thing struct {
	ID string
	// Names are what else it is called. Several things may share one.
	Names []string
	// About tells it from its like, in a few words.
	About string
}

// Result is what was found: one thing, several, or none.
type Result struct {
	One Thing // when Found
	// Found tells whether there is exactly one.
	Found bool
	// Short tells that One was found by the beginning of its id.
	Short bool
	// Several are those that what was typed fits equally well.
	Several []Thing
	// Near is the name that was probably meant, when nothing fits; "" when none
	// is close.
	Near string
}

// Find looks for what was typed among all that exists. A whole id goes before
// a name, a name before the beginning of an id.
func Find(typed string, all []Thing) Result {
	var named, begin []Thing
	for _, thing := range all {
		if thing.ID == typed {
			return Result{One: thing, Found: true}
		}
		for _, name := range thing.Names {
			if name == typed {
				named = append(named, thing)
				break
			}
		}
		if isBeginning(typed) && strings.HasPrefix(thing.ID, typed) {
			begin = append(begin, thing)
		}
	}
	fits, short := named, false
	if len(fits) == 0 {
		fits, short = begin, true
	}
	switch len(fits) {
	case 0:
		return Result{Near: nearest(typed, all)}
	case 1:
		return Result{One: fits[0], Found: true, Short: short}
	}
	return Result{Several: fits}
}

// isBeginning tells whether a text begins an id: a kind alone says nothing.
func isBeginning(typed string) bool {
	_, rest, ok := id.Cut(typed)
	return ok && rest != ""
}

func nearest(typed string, all []Thing) string {
	var names []string
	for _, thing := range all {
		names = append(names, thing.Names...)
	}
	return place.Nearest(typed, names)
}

// OneOf picks the resource of an install that is called so.
func OneOf(resources []ctlapi.Resource, install, typed string) ([]ctlapi.Resource, error) {
	things := make([]Thing, len(resources))
	for i, r := range resources {
		if r.Name == typed {
			return resources[i : i+1], nil
		}
		things[i] = Thing{ID: r.ID, Names: []string{r.Name}}
	}
	return nil, &Unknown{
		What: fmt.Sprintf("install %s has no component %q", install, usage.Shortened(typed)), Near: nearest(typed, things),
		List: "berth installs resources " + install,
	}
}
