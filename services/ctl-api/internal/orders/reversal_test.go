package orders_test

import (
	"testing"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/reversal"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
)

// What the app says of its sandbox and of a component counts where it is worse than
// what the plan tells.
func TestReversalThatTheAppSays(t *testing.T) {
	t.Parallel()
	said := func(class string) *appconfig.BlockExtension { return &appconfig.BlockExtension{Rollback: class} }
	app := &appconfig.App{Sandbox: &appconfig.Sandbox{Berth: said("irreversible")}, Components: []appconfig.Component{
		{Name: "db", Berth: said("data_loss")}, {Name: "web", Berth: said("reversible")}, {Name: "api", Berth: said("irreversible")}, {Name: "sandbox"},
	}}
	unclear := jobspec.PlanSummary{Objects: []jobspec.ObjectChange{{Action: "delete", Address: "acme_thing.x"}}}
	for _, tt := range []struct {
		kind, name string
		want       jobspec.ReversalClass
	}{
		{"sandbox", "sandbox", jobspec.Irreversible}, {"component", "db", jobspec.ReverseLoses}, {"component", "api", jobspec.Irreversible},
		{"component", "web", jobspec.ReverseUnknown}, {"component", "sandbox", jobspec.ReverseUnknown}, {"component", "gone", jobspec.ReverseUnknown},
	} {
		got := reversal.Of(jobspec.KindTerraformModule, unclear, orders.Reversal(app, jobspec.Resource{Kind: tt.kind, Name: tt.name}))
		if got.Class != tt.want {
			t.Errorf("%s %s is %s, want %s", tt.kind, tt.name, got.Class, tt.want)
		}
	}
}
