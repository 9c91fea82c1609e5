package check

import (
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// definedNames are the names that an app defines of one kind of thing.
type definedNames struct {
	what  string // "component", for people
	names []string
	kinds []string // of the blocks that define them
}

func namesOf[T any](what string, things []T, name func(*T) string, kinds ...string) definedNames {
	d := definedNames{what: what, kinds: kinds}
	for i := range things {
		d.names = append(d.names, name(&things[i]))
	}
	return d
}

// exists reports a name that is not among those defined.
func (v *validator) exists(at place.Place, name string, d definedNames) {
	if name == "" || v.mayDefine(d, name) {
		return
	}
	missing := v.At(place.Error, place.CodeReference, at, "%s %q does not exist", d.what, name)
	v.Diags = append(v.Diags, v.Suggest(missing, name, d.names))
}

// mayDefine tells whether a name is defined, or a file that may define it could
// not be read.
func (v *validator) mayDefine(d definedNames, name string) bool {
	return slices.Contains(d.names, name) || v.app.Unreadable(d.kinds...)
}

// components is asked for often, so it is made once.
func (v *validator) components() definedNames {
	if v.componentNames == nil {
		d := namesOf("component", v.app.Components, func(c *appconfig.Component) string { return c.Name }, "components")
		v.componentNames = &d
	}
	return *v.componentNames
}

func (v *validator) actionNames() definedNames {
	return namesOf("action", v.app.Actions, func(a *appconfig.Action) string { return a.Name }, "actions")
}

func (v *validator) inputNames() definedNames {
	return namesOf("input", v.app.Inputs, func(in *appconfig.Input) string { return in.Name }, "inputs")
}

func (v *validator) secretNames() definedNames {
	return namesOf("secret", v.app.Secrets, func(s *appconfig.Secret) string { return s.Name }, "secrets")
}
