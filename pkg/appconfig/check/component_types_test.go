package check_test

import (
	"slices"
	"testing"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// Each component type of the format is deployed, as a row of jobspec.Kinds says,
// or refused, as one of the table of what is not supported yet says.
func TestEveryComponentTypeIsDeployedOrNotYet(t *testing.T) {
	t.Parallel()
	for _, name := range appconfig.ComponentTypes() {
		if name == appconfig.TypeExternalImage {
			continue // read as a container_image
		}
		deployed := jobspec.Kinds[jobspec.Kind(name)].Component
		refused := slices.ContainsFunc(check.NotYets(), func(row check.NotYet) bool {
			return slices.Contains(row.Keys, "component.type="+string(name))
		})
		if deployed == refused {
			t.Errorf("type %s: in jobspec.Kinds %t, not supported yet %t", name, deployed, refused)
		}
	}
	for kind, info := range jobspec.Kinds {
		if info.Component && kind != jobspec.KindPlugin && !appconfig.ComponentType(kind).IsKnown() {
			t.Errorf("kind %s of jobspec.Kinds is no component type of the format", kind)
		}
	}
}
