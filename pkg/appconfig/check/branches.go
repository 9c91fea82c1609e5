package check

import (
	"maps"
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// branches checks the rules between branches: one repository, and no two groups
// with the same selector.
func (v *validator) branches() {
	once := v.once("branch")
	type selector struct {
		labels map[string]string
		at     place.Place
	}
	var selectors []selector
	for i := range v.app.Branches {
		b := &v.app.Branches[i]
		once(b.At, b.Name)
		if first := v.app.Branches[0].Repository(); b.Repository() != "" && first != "" && b.Repository() != first {
			v.Add(place.Error, place.CodeValue, b.At, "branch %q is of repository %q, and branch %q of %q; all branches of an app are of one", b.Name, b.Repository(), v.app.Branches[0].Name, first)
		}
		for j := range b.InstallGroups {
			g := &b.InstallGroups[j]
			at := b.At.Below("install_groups").Item(j).Below("label_selector")
			if len(g.LabelSelector) == 0 {
				continue
			}
			same := slices.IndexFunc(selectors, func(s selector) bool { return maps.Equal(s.labels, g.LabelSelector) })
			if same >= 0 {
				v.Add(place.Error, place.CodeDuplicate, at, "the selector of install group %q is already that at %s", g.Name, v.Origin.Where(selectors[same].at))
				continue
			}
			selectors = append(selectors, selector{g.LabelSelector, at})
		}
	}
}
