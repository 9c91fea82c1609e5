package orders

import (
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// Reversal is what an app says that going back costs of its sandbox, or of a
// component: its key `[berth] rollback`. Empty when it says nothing.
func Reversal(app *appconfig.App, resource jobspec.Resource) jobspec.ReversalClass {
	var block *appconfig.BlockExtension
	switch c := app.Component(resource.Name); {
	case resource.Kind == "sandbox" && app.Sandbox != nil:
		block = app.Sandbox.Berth
	case resource.Kind == "component" && c != nil:
		block = c.Berth
	}
	if block == nil {
		return ""
	}
	return jobspec.ReversalClass(block.Rollback)
}
