package orders

import (
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/rehearsal"
)

// Rehearse turns the work on a sandbox or a Terraform module into its rehearsal.
// Other work stays as it is: it is really done.
func Rehearse(spec *jobspec.Spec, resource jobspec.Resource, made rehearsal.Result) {
	if spec.Kind != jobspec.KindTerraformModule {
		return
	}
	sandbox := resource.Kind == "sandbox"
	r := &jobspec.Rehearsal{StandIn: sandbox, Outputs: made.Components[resource.Name]}
	prefix := "components." + resource.Name + ".outputs."
	if sandbox {
		r.Outputs, prefix = made.Sandbox, "sandbox.outputs."
	}
	names := map[string]bool{}
	for _, o := range made.Origins {
		if below, ok := strings.CutPrefix(o.Path, prefix); ok && o.Source == rehearsal.MadeUp {
			name, _, _ := strings.Cut(below, ".")
			names[name] = true
		}
	}
	r.MadeUp = slices.Sorted(maps.Keys(names))
	spec.Kind, spec.Rehearsal = jobspec.KindRehearsal, r
}
