package settings_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/settings"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func TestUpdate(t *testing.T) {
	t.Parallel()
	hours := 72
	all, prompt := ctlapi.ApprovalOptionApproveAll, ctlapi.ApprovalOptionPrompt
	for _, tc := range []struct {
		typed string
		want  ctlapi.InstallUpdate
		wrong string
	}{
		{"label=tier=gold", ctlapi.InstallUpdate{Labels: &ctlapi.Labels{"ring": "0", "tier": "gold"}}, ""},
		{"label=ring=", ctlapi.InstallUpdate{Labels: &ctlapi.Labels{"ring": ""}}, ""},
		{"label=ring-", ctlapi.InstallUpdate{Labels: &ctlapi.Labels{}}, ""},
		{"label=a=b=c label=ring-", ctlapi.InstallUpdate{Labels: &ctlapi.Labels{"a": "b=c"}}, ""},
		{"approval=approve-all", ctlapi.InstallUpdate{ApprovalOption: &all}, ""},
		{"approval=approve_all", ctlapi.InstallUpdate{ApprovalOption: &all}, ""},
		{"approval=prompt", ctlapi.InstallUpdate{ApprovalOption: &prompt}, ""},
		{"approval-time=72h", ctlapi.InstallUpdate{ApprovalHours: &hours}, ""},
		{"approval-time=0h", ctlapi.InstallUpdate{}, "from 1h to 8760h"},
		{"approval-time=-3h", ctlapi.InstallUpdate{}, "from 1h to 8760h"},
		{"approval-time=90m", ctlapi.InstallUpdate{}, "whole hours"},
		{"approval-time=8761h", ctlapi.InstallUpdate{}, "from 1h to 8760h"},
		{"approval-time=3", ctlapi.InstallUpdate{}, `such as 72h, not "3"`},
		{"objective=99.9", ctlapi.InstallUpdate{HealthObjective: new(99.9)}, ""},
		{"objective=99.9%", ctlapi.InstallUpdate{HealthObjective: new(99.9)}, ""},
		{"objective=none", ctlapi.InstallUpdate{HealthObjective: new(0.0)}, ""},
		{"objective=100", ctlapi.InstallUpdate{}, "from 50 to 99.999"},
		{"objective=NaN", ctlapi.InstallUpdate{}, "from 50 to 99.999"},
		{"objective=much", ctlapi.InstallUpdate{}, `not "much"`},
		{"approval=yes", ctlapi.InstallUpdate{}, `not "yes"`},
		{"lable=tier=gold", ctlapi.InstallUpdate{}, "did you mean label?"},
		{"label=tier", ctlapi.InstallUpdate{}, "neither"},
		{"label==x", ctlapi.InstallUpdate{}, "neither"},
		{"label", ctlapi.InstallUpdate{}, "NAME=VALUE"},
	} {
		t.Run(tc.typed, func(t *testing.T) {
			t.Parallel()
			had := ctlapi.Labels{"ring": "0"}
			got, err := settings.Update(had, strings.Fields(tc.typed))
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Errorf("got error %v, want %q in it", err, tc.wrong)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil || had["ring"] != "0" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
