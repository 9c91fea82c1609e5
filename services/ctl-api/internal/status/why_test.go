package status_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/status"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

func TestWhy(t *testing.T) {
	t.Parallel()
	paused := &ctldb.Runner{State: "active", Switch: "pause"}
	for _, tt := range []struct {
		name string
		in   status.Settled
		want []string
	}{
		{"live and up to date", status.Settled{Status: status.Status{Standing: status.Live}}, nil},
		{"never provisioned", status.Settled{Status: status.Status{Standing: status.NotProvisioned}}, []string{"it was never provisioned | berth installs provision acme"}},
		{"deprovisioned", status.Settled{Status: status.Status{Standing: status.Deprovisioned}}, []string{"it is deprovisioned: nothing of it is left | berth installs provision acme"}},
		{"the failed provision says it itself", status.Settled{Status: status.Status{Standing: status.ProvisionFailed}, LastFailed: true}, nil},
		{
			"what a failed provision left, after a deploy of a part",
			status.Settled{Status: status.Status{Standing: status.ProvisionFailed}, Missing: []string{"api", "web"}},
			[]string{"its provision did not succeed; not live: api, web | berth installs provision acme"},
		},
		{
			"half removed", status.Settled{Status: status.Status{Standing: status.DeprovisionFailed}},
			[]string{"its removal did not succeed | berth installs deprovision acme"},
		},
		{
			"behind, with inputs and toggles set",
			status.Settled{Status: status.Status{Standing: status.Live, Pending: []status.Pending{status.Release, status.Inputs, status.Toggles}}, Release: 3, Newest: 5},
			[]string{
				"it is on release 3, and 5 is the newest | berth deploy acme", "inputs were set and are not deployed | berth deploy acme",
				"components were switched on or off, and that is not deployed | berth deploy acme",
			},
		},
		{
			"the customer's switch", status.Settled{Status: status.Status{Standing: status.Live}, Runner: paused},
			[]string{"the customer's switch is at pause | ask the customer to set the runner's switch to run"},
		},
	} {
		tt.in.Install = ctldb.Install{ID: "ins_1", Name: "acme"}
		var got []string
		for _, r := range status.Why(tt.in) {
			got = append(got, r.Reason+" | "+r.Unblock)
			if r.On == "" || !strings.HasSuffix(r.What, "acme") {
				t.Errorf("%s: %+v", tt.name, r)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
