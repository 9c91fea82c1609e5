package workflow

import (
	"context"
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/foresight"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// retriesOf is how often the app lets a component fail; 0 for one that the release
// does not have.
func retriesOf(in flow.PlanInput, name string) int {
	for _, c := range in.Components {
		if c.Name == name {
			return c.MaxRetries
		}
	}
	return 0
}

// gatherRefers completes the input of flow.Plan with what refers to inputs that
// changed since it was deployed. What was never made refers to nothing yet: a deploy
// makes it.
func (b basis) gatherRefers(ctx context.Context, tx *database.Tx, in *flow.PlanInput, resources map[string]ctldb.Resource) error {
	app, err := releaseview.App(ctx, tx.Queries, b.releaseID)
	if err != nil {
		return err
	}
	overrides, err := releaseview.Overrides(ctx, tx.Queries, b.install.ID, b.install.InputsVersion)
	if err != nil {
		return err
	}
	made := map[string]bool{}
	for _, m := range in.Made {
		made[resourceKey(kindOf(m), m.Name)] = true
	}
	refers := func(key string, source foresight.Source, override appconfig.InstallComponent) (inputs []string, moved flow.Moved) {
		if !made[key] {
			return nil, flow.Moved{}
		}
		moved = b.Moved[optional.Value(resources[key].LiveInputsVersion)]
		for _, read := range foresight.Inputs(foresight.Block{App: app, Source: source, Override: override}) {
			if moved.All || slices.Contains(moved.Inputs, read.Name) {
				inputs = append(inputs, read.String())
			}
		}
		return inputs, moved
	}
	in.SandboxRefers, _ = refers(resourceKey(model.KindSandbox, ""), foresight.Source{Kind: foresight.SourceSandbox}, appconfig.InstallComponent{})
	for i := range in.Components {
		c := &in.Components[i]
		var moved flow.Moved
		c.Refers, moved = refers(resourceKey(model.KindComponent, c.Name), foresight.Source{Kind: foresight.SourceComponent, Name: c.Name}, overrides[c.Name])
		c.Overridden = slices.Contains(moved.Overrides, c.Name)
	}
	return nil
}

// kindOf is the kind of the resource that something which exists is.
func kindOf(m flow.PlanMade) model.ResourceKind {
	if m.Sandbox {
		return model.KindSandbox
	}
	return model.KindComponent
}
