package engine_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/terraform/terraformtest"
)

// files are two resources whose world a test edits.
const files = terraformtest.Required + `
variable "dir" { type = string }
variable "text" { type = string }
resource "world_file" "motd" {
  path   = "${var.dir}/motd"
  text   = var.text
  secret = "canary-one-two"
}
resource "world_file" "other" {
  path = "${var.dir}/other"
  text = "as deployed"
}
`

// A world is an install whose module makes files, and what its last plan pinned.
type world struct {
	*install
	config string
	plan   *jobDir
}

func deployWorld(t *testing.T, module string) *world {
	t.Helper()
	w := &world{install: newInstall(t, module), config: terraformtest.Mirror(t, t.TempDir())}
	w.deploy(t)
	return w
}

func (w *world) with(j *jobDir) *jobDir {
	j.env["TF_CLI_CONFIG_FILE"] = w.config
	return j
}

func (w *world) deploy(t *testing.T) {
	t.Helper()
	w.plan = w.with(w.install.plan(t, map[string]any{"text": "ahoy"}))
	if !w.plan.must(t).NoChange {
		w.with(w.applyOf(t, w.plan)).must(t)
	}
}

// look is a look for drift, as the agent has it made.
func (w *world) look(t *testing.T, accept ...jobspec.DriftRule) *jobDir {
	t.Helper()
	j := w.with(w.job(t, jobspec.OperationDrift, jobspec.TerraformModule{}))
	j.spec.State, j.spec.Drift = nil, &jobspec.DriftLook{Change: "chg_1", State: &jobspec.StateMark{}, Accept: accept}
	copyTree(t, filepath.Join(w.plan.path, "out/pinned"), filepath.Join(j.path, "in/live"))
	return j
}

// edit writes attributes of a file, as somebody outside does.
func (w *world) edit(t *testing.T, name string, attributes map[string]any) {
	t.Helper()
	raw, err := json.Marshal(attributes)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, name), raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Somebody edits and deletes what a module made: the look says which resource and which
// attribute, and no secret. A deploy of the same puts it back.
func TestDriftOfModule(t *testing.T) {
	t.Parallel()
	w := deployWorld(t, files)
	before := w.backend.stored(t)

	clean := w.look(t)
	if d := clean.must(t).Drift; d == nil || d.Class != "" || d.Looked != 2 || d.Change != "chg_1" || len(d.Objects) > 0 {
		t.Fatalf("nobody touched it: %+v", d)
	}

	w.edit(t, "motd", map[string]any{"text": "by hand", "secret": "another-canary", "note": "seen"})
	if err := os.Remove(filepath.Join(w.dir, "other")); err != nil {
		t.Fatal(err)
	}
	drifted := w.look(t)
	d := drifted.must(t).Drift
	want := []jobspec.DriftObject{
		{Address: "world_file.motd", Drifted: true, Differences: []jobspec.DriftDifference{
			{Path: "secret", What: "changed", Want: "(sensitive)", Have: "(sensitive)", Class: "real", Why: "it was changed outside of Terraform"},
			{Path: "text", What: "changed", Want: `"ahoy"`, Have: `"by hand"`, Class: "real", Why: "it was changed outside of Terraform"},
			{Path: "note", What: "added", Have: `"seen"`, Class: "defaulted", Why: "it was changed outside of Terraform, and the module does not set it"},
		}},
		{Address: "world_file.other", Drifted: true, Differences: []jobspec.DriftDifference{
			{Path: ".", What: "gone", Class: "real", Why: "it was deleted outside of Terraform"},
		}},
	}
	if d == nil || d.Class != "real" || !d.AtOnce {
		t.Fatalf("drift is %+v", d)
	}
	if diff := cmp.Diff(want, d.Objects); diff != "" {
		t.Errorf("drift (-want +got):\n%s", diff)
	}
	for name, text := range map[string]string{"log": drifted.log(t), "result": drifted.read(t, "out/result.json")} {
		if strings.Contains(text, "canary") || strings.Contains(text, backendPassword) {
			t.Errorf("%s holds a secret:\n%s", name, text)
		}
	}
	wantContains(t, "log", drifted.log(t), "world_file.other: drift: it was deleted outside of Terraform")

	until := time.Now().Add(time.Hour)
	accepted := w.look(t,
		jobspec.DriftRule{Kind: "world_file", Name: "world_file.motd", Path: "*", Reason: "a test", By: "ops", Until: until},
		jobspec.DriftRule{Kind: "world_file", Name: "other", Path: ".", Reason: "a test", By: "ops", Until: until}).must(t).Drift
	if accepted.Class != "" || accepted.Counts[jobspec.DriftAccepted] != 3 {
		t.Errorf("accepted: %+v", accepted)
	}
	if after := w.backend.stored(t); after.Serial != before.Serial || after.Lineage != before.Lineage || w.backend.locked() {
		t.Errorf("the state was %+v and is %+v, locked %t", before, after, w.backend.locked())
	}

	older := w.look(t)
	if err := os.Remove(filepath.Join(older.path, "in/live/inputs.json")); err != nil {
		t.Fatal(err)
	}
	if r := older.run(t); r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Error, "after the next deploy") {
		t.Errorf("of a plan of an older runner: %+v", r)
	}

	w.deploy(t)
	if d := w.look(t).must(t).Drift; d.Class != "" {
		t.Errorf("after a deploy of the same: %+v", d)
	}
}
