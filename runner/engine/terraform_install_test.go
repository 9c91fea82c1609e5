package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// greeting is a module with an effect outside of its state: it appends to a
// file of the install each time it is applied.
const greeting = `
variable "text" { type = string }
variable "secret" {
  type      = string
  default   = ""
  sensitive = true
}
variable "dir" { type = string }

resource "terraform_data" "file" {
  input            = { text = var.text, secret = var.secret }
  triggers_replace = var.text
  provisioner "local-exec" {
    command     = "echo applied >> \"$DIR/effects\""
    environment = { DIR = var.dir }
  }
}

output "text" { value = var.text }
output "secret" {
  value     = var.secret
  sensitive = true
}
`

// An install runs jobs of one component against one state.
type install struct {
	backend *backend
	dir     string
	module  string
}

func newInstall(t *testing.T, module string) *install {
	t.Helper()
	return &install{backend: newBackend(t), dir: t.TempDir(), module: module}
}

func (i *install) effects(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(i.dir, "effects"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

func (i *install) job(t *testing.T, op jobspec.Operation, m jobspec.TerraformModule) *jobDir {
	t.Helper()
	j := newJob(t, jobspec.Spec{
		Kind: jobspec.KindTerraformModule, Operation: op, Work: jobspec.Work{TerraformModule: &m},
		Resource: &jobspec.Resource{ID: "res_1", Kind: "component", Name: "greeting"},
		Artifact: &jobspec.Artifact{Repository: "org_1/app/greeting", Digest: "sha256:0"},
		State:    state(t, map[string]any{"id": "ins_1", "name": "acme", "app": map[string]any{"id": "app_1"}}),
	})
	j.env = with(with(j.env, i.backend.env()), map[string]string{"BERTH_TERRAFORM": terraformPath(t), "BERTH_INSTALL_DIR": i.dir})
	j.write(t, "in/artifact/main.tf", i.module)
	return j
}

func (i *install) plan(t *testing.T, vars map[string]any) *jobDir {
	t.Helper()
	if vars == nil {
		vars = map[string]any{}
	}
	if _, ok := vars["dir"]; !ok && strings.Contains(i.module, `variable "dir"`) {
		vars["dir"] = i.dir
	}
	return i.job(t, jobspec.OperationPlan, jobspec.TerraformModule{Vars: vars})
}

// applyOf is the apply of a finished plan, in a job directory of its own.
func (i *install) applyOf(t *testing.T, plan *jobDir) *jobDir {
	t.Helper()
	j := i.job(t, jobspec.OperationApply, *plan.spec.TerraformModule)
	j.spec.Kind, j.spec.Rehearsal, j.spec.Destroy = plan.spec.Kind, plan.spec.Rehearsal, plan.spec.Destroy
	copyTree(t, filepath.Join(plan.path, "out/pinned"), filepath.Join(j.path, "in/pinned"))
	return j
}

// deploy plans and applies.
func (i *install) deploy(t *testing.T, vars map[string]any) jobspec.Result {
	t.Helper()
	plan := i.plan(t, vars)
	plan.must(t)
	return i.applyOf(t, plan).must(t)
}

func (j *jobDir) summary(t *testing.T) jobspec.PlanSummary {
	t.Helper()
	var s jobspec.PlanSummary
	j.readJSON(t, "out/plan.summary.json", &s)
	return s
}

// private checks that nobody else may read what may hold secrets.
func private(t *testing.T, dir string) {
	t.Helper()
	for _, sub := range []string{"out", "work/vars"} {
		err := filepath.WalkDir(filepath.Join(dir, sub), func(path string, e os.DirEntry, err error) error {
			if os.IsNotExist(err) {
				return nil
			}
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %s", path, info.Mode())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
