package helm

import (
	"fmt"
	"slices"

	"helm.sh/helm/v3/pkg/release"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// hook is a hook of a release as it goes into the canonical plan.
type hook struct {
	Name     string              `json:"name"`
	Kind     string              `json:"kind"`
	Events   []release.HookEvent `json:"events"`
	Weight   int                 `json:"weight"`
	Manifest string              `json:"manifest"`
}

func hooksOf(list []*release.Hook) []hook {
	out := make([]hook, len(list))
	for i, h := range list {
		out[i] = hook{Name: h.Name, Kind: h.Kind, Events: h.Events, Weight: h.Weight, Manifest: h.Manifest}
	}
	return out
}

// events are those of which hooks run in a mode.
func (m mode) events() []release.HookEvent {
	switch m {
	case modeInstall:
		return []release.HookEvent{release.HookPreInstall, release.HookPostInstall}
	case modeUpgrade:
		return []release.HookEvent{release.HookPreUpgrade, release.HookPostUpgrade}
	case modeUninstall:
		return []release.HookEvent{release.HookPreDelete, release.HookPostDelete}
	}
	return nil
}

// hookChanges tells people which hooks run, in the order in which they do, and
// what they are.
func hookChanges(list []hook, m mode) []jobspec.ObjectChange {
	var out []jobspec.ObjectChange
	for _, event := range m.events() {
		running := slices.DeleteFunc(slices.Clone(list), func(h hook) bool { return !slices.Contains(h.Events, event) })
		slices.SortStableFunc(running, func(a, b hook) int { return a.Weight - b.Weight })
		for _, h := range running {
			out = append(out, jobspec.ObjectChange{
				Address: fmt.Sprintf("%s %s", h.Kind, h.Name), Action: "run", Reason: fmt.Sprintf("%s hook", event),
				Fields: hookFields(h),
			})
		}
	}
	return out
}

// hookFields are the fields of the objects that a hook makes, without the values
// of Secrets.
func hookFields(h hook) []jobspec.FieldChange {
	objects, err := kube.ParseObjects(h.Manifest)
	if err != nil { // the API server will say so too
		return []jobspec.FieldChange{{Path: "manifest", After: "(cannot be read)"}}
	}
	var fields []jobspec.FieldChange
	for _, obj := range objects {
		fields = append(fields, kube.Diff(nil, obj)...)
	}
	return fields
}
