package status_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/status"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		in      status.Facts
		want    status.Standing
		pending []status.Pending
	}{
		{name: "made, and nothing asked for", in: status.Facts{State: "new", Newest: "rel_2"}, want: "not_provisioned"},
		{name: "its first provision is queued", in: status.Facts{State: "new", Doing: "provision"}, want: "provisioning"},
		{name: "its first provision runs", in: status.Facts{State: "provisioning", Doing: "provision"}, want: "provisioning"},
		{name: "its first provision failed", in: status.Facts{State: "provisioning", Newest: "rel_2"}, want: "provision_failed"},
		{name: "and a deploy tries to complete it", in: status.Facts{State: "provisioning", Doing: "deploy"}, want: "provision_failed"},
		{name: "live and up to date", in: status.Facts{State: "live", Release: "rel_2", Newest: "rel_2"}, want: "live"},
		{name: "behind", in: status.Facts{State: "live", Release: "rel_1", Newest: "rel_2"}, want: "live", pending: []status.Pending{"release"}},
		{name: "inputs and toggles set", in: status.Facts{State: "live", Release: "rel_1", Newest: "rel_1", Inputs: true, Toggles: true}, want: "live", pending: []status.Pending{"inputs", "toggles"}},
		{name: "being removed", in: status.Facts{State: "deprovisioning", Doing: "deprovision", Release: "rel_1", Newest: "rel_2"}, want: "deprovisioning"},
		{name: "half removed", in: status.Facts{State: "deprovisioning", Release: "rel_1", Newest: "rel_2"}, want: "deprovision_failed"},
		{name: "removed, so nothing is pending", in: status.Facts{State: "deprovisioned", Release: "rel_1", Newest: "rel_2", Inputs: true}, want: "deprovisioned"},
		{name: "its record is deleted", in: status.Facts{State: "forgotten"}, want: "forgotten"},
	} {
		if diff := cmp.Diff(status.Status{Standing: tt.want, Pending: tt.pending}, status.Of(tt.in)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
