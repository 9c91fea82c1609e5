package flow_test

import (
	"testing"

	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/model"
)

func TestInstallAfter(t *testing.T) {
	t.Parallel()
	const good, bad, stopped = model.WorkflowSucceeded, model.WorkflowFailed, model.WorkflowCancelled
	for _, tt := range []struct {
		name string
		in   flow.Ended
		want model.InstallState
	}{
		{"a provision makes it live", flow.Ended{Kind: flow.KindProvision, State: good, Was: "provisioning"}, "live"},
		{"a first provision that failed leaves it", flow.Ended{Kind: flow.KindProvision, State: bad, Was: "provisioning"}, "provisioning"},
		{"the deploy that completes it makes it live", flow.Ended{Kind: flow.KindDeploy, State: good, Was: "provisioning", Whole: true}, "live"},
		{"a deploy of a part of it does not", flow.Ended{Kind: flow.KindDeploy, State: good, Was: "provisioning"}, "provisioning"},
		{"nor one next to a provision that runs", flow.Ended{Kind: flow.KindDeploy, State: good, Was: "provisioning", Whole: true, Busy: true}, "provisioning"},
		{"a second provision that failed early leaves what is live", flow.Ended{Kind: flow.KindProvision, State: bad, Was: "provisioning", Whole: true}, "live"},
		{"a removal leaves nothing", flow.Ended{Kind: flow.KindDeprovision, State: good, Was: "deprovisioning"}, "deprovisioned"},
		{"a removal that nobody approved leaves what is live", flow.Ended{Kind: flow.KindDeprovision, State: stopped, Was: "deprovisioning", Whole: true}, "live"},
		{"half a removal is none", flow.Ended{Kind: flow.KindDeprovision, State: bad, Was: "deprovisioning"}, "deprovisioning"},
		{"a deploy that failed changes nothing", flow.Ended{Kind: flow.KindDeploy, State: bad, Was: "live"}, "live"},
		{"an action changes nothing", flow.Ended{Kind: flow.KindActionRun, State: good, Was: "provisioning", Whole: true}, "provisioning"},
	} {
		if got := flow.InstallAfter(tt.in); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
