package engine_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// While an apply works on a resource, its job says which, since when, and how many
// are done; afterwards it says nothing.
func TestProgressOfTerraform(t *testing.T) {
	t.Parallel()
	i := newInstall(t, `
variable "until" { type = string }
resource "terraform_data" "quick" { input = 1 }
resource "terraform_data" "slow" {
  for_each   = toset(["main"])
  depends_on = [terraform_data.quick]
  provisioner "local-exec" { command = "until [ -e ${var.until} ]; do sleep 0.05; done" }
}
`)
	until := filepath.Join(t.TempDir(), "go on")
	plan := i.plan(t, map[string]any{"until": "'" + until + "'"})
	plan.must(t)
	apply := i.applyOf(t, plan)
	cmd := apply.start(t)
	progress := func() (p jobspec.Progress) {
		data, err := os.ReadFile(filepath.Join(apply.path, "out/progress.json"))
		if err == nil {
			err = json.Unmarshal(data, &p)
		}
		if err != nil && !os.IsNotExist(err) {
			t.Errorf("progress.json: %v", err)
		}
		return p
	}
	const slow = `terraform_data.slow["main"]`
	waitFor(t, "the slow resource", func() bool { return progress().What == slow })
	got := progress()
	want := jobspec.Progress{What: slow, Doing: "creating", Done: 1, Total: 2}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(jobspec.Progress{}, "Since")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if age := time.Since(got.Since); age < 0 || age > time.Minute {
		t.Errorf("it says since %s, which is %s ago", got.Since, age)
	}
	if err := os.WriteFile(until, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := apply.finish(t, cmd); r.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("%s: %s", r.Outcome, r.Error)
	}
	if left := progress(); left != (jobspec.Progress{}) {
		t.Errorf("after its end it still says %+v", left)
	}
}
