package orders

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/rehearsal"
)

// Stage is what a rehearsal has instead of a cloud.
type Stage struct {
	App  *appconfig.App
	Made rehearsal.Result
	// Platform is the cloud. Without one the sandbox may be real, as a component may.
	Platform rehearsal.Platform
	// NoCluster: the install has no cluster either.
	NoCluster bool
}

// readyWithin is how long a chart or a manifest of a rehearsal has to get ready. What a
// cluster lacks, such as a storage class or a way to an image, it does not get later.
const readyWithin = 90 * time.Second

// Rehearse turns the work on a sandbox, a Terraform module, a part with a stand-in,
// or what goes to a cluster that is not there, into its rehearsal. Other work stays
// as it is: it is really done.
func Rehearse(spec *jobspec.Spec, resource jobspec.Resource, s Stage) {
	sandbox := resource.Kind == "sandbox"
	why := s.standIn(resource)
	onCluster := s.NoCluster && jobspec.Kinds[spec.Kind].OnCluster
	if spec.Kind != jobspec.KindTerraformModule && !onCluster {
		if jobspec.Kinds[spec.Kind].OnCluster && spec.Operation == jobspec.OperationPlan {
			spec.TimeoutSeconds = min(spec.TimeoutSeconds, int(readyWithin/time.Second))
		}
		return
	}
	r := &jobspec.Rehearsal{StandIn: sandbox && s.Platform != rehearsal.None, Why: why, Outputs: s.Made.Components[resource.Name]}
	prefix := "components." + resource.Name + ".outputs."
	if sandbox {
		r.Outputs, prefix = s.Made.Sandbox, "sandbox.outputs."
	}
	names := map[string]bool{}
	for _, o := range s.Made.Origins {
		if below, ok := strings.CutPrefix(o.Path, prefix); ok && o.Source == rehearsal.MadeUp {
			name, _, _ := strings.Cut(below, ".")
			names[name] = true
		}
	}
	r.MadeUp = slices.Sorted(maps.Keys(names))
	if onCluster {
		r.Chart, r.Manifest = spec.HelmChart, spec.KubernetesManifest
		spec.Work = jobspec.Work{TerraformModule: &jobspec.TerraformModule{}}
	}
	spec.Kind, spec.Rehearsal = jobspec.KindRehearsal, r
}

// standIn is why a stand-in takes the place of a resource, "" where none does.
func (s Stage) standIn(resource jobspec.Resource) string {
	if s.App == nil {
		return ""
	}
	key := appconfig.BlockSandbox
	if resource.Kind != "sandbox" {
		key = appconfig.BlockComponent + "/" + resource.Name
	}
	return s.App.StandIns()[key]
}
