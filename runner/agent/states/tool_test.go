package states_test

import (
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/states"
)

func TestToolChange(t *testing.T) {
	t.Parallel()
	const rest = ". The state keeps its lineage and its objects, and the next apply writes it with "
	for _, tc := range []struct{ name, before, now, want string }{
		{"the same", "terraform", "terraform", ""},
		{"to OpenTofu", "terraform", "opentofu", "Tool changes: Terraform wrote the state; this plan is of OpenTofu 1.2.3" + rest + "OpenTofu.\n\n"},
		{"and back", "opentofu", "terraform", "Tool changes: OpenTofu wrote the state; this plan is of Terraform 1.2.3" + rest + "Terraform.\n\n"},
		{"not known", "", "opentofu", "Tool changes: This runner does not know which tool wrote the state; this plan is of OpenTofu 1.2.3" + rest + "OpenTofu.\n\n"},
		{"not known, and nothing is new", "", "terraform", ""},
		{"another kind", "", "pulumi", ""},
	} {
		if got := states.ToolChange(tc.before, jobspec.Tool{Name: tc.now, Version: "1.2.3"}); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}
