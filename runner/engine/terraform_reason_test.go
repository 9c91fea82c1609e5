package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A plan tells which field forces a replace, and what only its apply can read, as the
// real Terraform says it.
func TestReasonsOfAPlan(t *testing.T) {
	t.Parallel()
	i := newInstall(t, `variable "size" { type = string }
resource "terraform_data" "disk" {
  input            = var.size
  triggers_replace = { size = var.size }
}
`)
	first := i.plan(t, map[string]any{"size": "1"})
	first.must(t)
	i.applyOf(t, first).must(t)
	i.module += `data "terraform_remote_state" "later" {
  backend = "local"
  config  = { path = terraform_data.disk.id }
}
`
	plan := i.plan(t, map[string]any{"size": "2"})
	plan.must(t)
	got := map[string]string{}
	for _, o := range plan.summary(t).Objects {
		got[o.Address] = o.Action + ": " + o.Reason
	}
	want := map[string]string{
		"terraform_data.disk":               "replace: replace because cannot update, forced by triggers_replace",
		"data.terraform_remote_state.later": "read: read because config unknown",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}
