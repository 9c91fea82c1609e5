package engine_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// Our summary of a plan says of modules that others wrote what `terraform show
// -json` says: of each object, and of each output that changes.
func TestSummariesOfPublicModules(t *testing.T) {
	t.Parallel()
	public := os.Getenv("BERTH_TEST_PUBLIC")
	if public == "" {
		t.Skip("no public modules: set BERTH_TEST_PUBLIC to what dev/scripts/public.sh prints")
	}
	mirror := os.Getenv("BERTH_TEST_PROVIDER_MIRROR")
	dirs, err := filepath.Glob(filepath.Join(public, "modules", "*"))
	if err != nil || len(dirs) < 20 {
		t.Fatalf("%d modules in %s: %v", len(dirs), public, err)
	}
	config := providersFrom(t, mirror)
	for _, dir := range dirs {
		source, err := os.ReadFile(filepath.Join(dir, "main.tf"))
		if err != nil {
			t.Fatal(err)
		}
		if mirror == "" && bytes.Contains(source, []byte("time")) {
			continue // TestMockedProvider says that there is no provider
		}
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			i := newInstall(t, string(source))
			theirs := &command{dir: filepath.Join(t.TempDir(), "module"), env: append(os.Environ(), "TF_CLI_CONFIG_FILE="+config)}
			copyTree(t, dir, theirs.dir)
			theirs.terraform(t, "init", "-input=false")
			for _, step := range []string{"the first plan", "a second plan", "a teardown"} {
				plan := i.plan(t, nil)
				plan.module(t, dir)
				plan.env = with(plan.env, map[string]string{"TF_CLI_CONFIG_FILE": config})
				plan.spec.Destroy = step == "a teardown"
				plan.must(t)
				if diff := cmp.Diff(theirs.plan(t, plan.spec.Destroy), ours(plan.summary(t))); diff != "" {
					t.Errorf("%s (-terraform show -json +our summary):\n%s", step, diff)
				}
				if plan.spec.Destroy || !strings.Contains(string(source), "resource ") {
					return
				}
				if !plan.summary(t).NoChange {
					apply := i.applyOf(t, plan)
					apply.module(t, dir)
					apply.env = with(apply.env, map[string]string{"TF_CLI_CONFIG_FILE": config})
					apply.must(t)
					theirs.terraform(t, "apply", "-input=false", "saved")
				}
			}
		})
	}
}

// module makes the files of a directory the artifact.
func (j *jobDir) module(t *testing.T, dir string) {
	t.Helper()
	artifact := filepath.Join(j.path, "in/artifact")
	if err := os.RemoveAll(artifact); err != nil {
		t.Fatal(err)
	}
	copyTree(t, dir, artifact)
}

// providersFrom is a configuration that makes Terraform take providers from a
// directory.
func providersFrom(t *testing.T, mirror string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "terraform.rc")
	text := "provider_installation {\n  filesystem_mirror {\n    path = " + strconv.Quote(mirror) + "\n  }\n}\n"
	if mirror == "" {
		text = ""
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A command is Terraform itself in a directory, with a state of its own.
type command struct {
	dir string
	env []string
}

func (c *command) terraform(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), terraformPath(t), args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("terraform %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return out
}

// plan makes a plan, and says what `terraform show -json` says of it, as lines:
// "create terraform_data.a", "output a".
func (c *command) plan(t *testing.T, destroy bool) []string {
	t.Helper()
	args := []string{"plan", "-input=false", "-lock=false", "-out=saved"}
	if destroy {
		args = append(args, "-destroy")
	}
	c.terraform(t, args...)
	var shown struct {
		Resources []struct {
			Address string
			Change  struct{ Actions []string }
		} `json:"resource_changes"`
		Outputs map[string]struct{ Actions []string } `json:"output_changes"`
	}
	if err := json.Unmarshal(c.terraform(t, "show", "-json", "saved"), &shown); err != nil {
		t.Fatal(err)
	}
	lines := []string{}
	for _, r := range shown.Resources {
		action := strings.Join(r.Change.Actions, "+")
		switch action {
		case "no-op":
			continue
		case "delete+create", "create+delete":
			action = "replace"
		}
		lines = append(lines, action+" "+r.Address)
	}
	for name, o := range shown.Outputs {
		if !slices.Equal(o.Actions, []string{"no-op"}) {
			lines = append(lines, "output "+name)
		}
	}
	slices.Sort(lines)
	return lines
}

// ours are the same lines of a summary.
func ours(s jobspec.PlanSummary) []string {
	lines := []string{}
	for _, o := range s.Objects {
		lines = append(lines, o.Action+" "+o.Address)
	}
	for _, o := range s.Outputs {
		name, _, _ := strings.Cut(o.Path, ".")
		name, _, _ = strings.Cut(name, "[")
		if line := "output " + name; !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}
