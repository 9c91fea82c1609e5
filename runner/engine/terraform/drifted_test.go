package terraform

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	tfjson "github.com/hashicorp/terraform-json"

	"github.com/berth-dev/berth/runner/engine/terraform/terraformtest"
)

var record = flag.Bool("update", false, "make testdata/drift again, with the terraform of the machine")

func TestMain(m *testing.M) {
	terraformtest.IfProvider()
	os.Exit(m.Run())
}

// driftModule is what the scenes deploy; more is appended.
const driftModule = terraformtest.Required + `
variable "dir" { type = string }
resource "world_file" "motd" {
  path   = "${var.dir}/motd"
  text   = "as deployed"
  secret = "canary-one-two"
}
`

// driftScenes are what somebody does to the world after a deploy. With -update they are
// played, and what `terraform show -json` says of the plan after them is recorded; the test
// reads the recordings.
var driftScenes = []struct {
	name string
	more string         // of the module
	gone bool           // the file is deleted
	edit map[string]any // or has these attributes
	want []string       // ADDRESS CLASS WHAT PATH WANT HAVE
	why  string         // in one of them
}{
	{name: "nothing happens"},
	{name: "edited", edit: map[string]any{"text": "by hand", "secret": "canary-one-two"}, want: []string{`world_file.motd real changed text "as deployed" "by hand"`}},
	{name: "secret edited", edit: map[string]any{"text": "as deployed", "secret": "canary-three"}, want: []string{`world_file.motd real changed secret (sensitive) (sensitive)`}},
	{name: "secret removed", edit: map[string]any{"text": "as deployed"}, want: []string{`world_file.motd real removed secret (sensitive) `}},
	{name: "not set by the module", edit: map[string]any{"text": "as deployed", "secret": "canary-one-two", "note": "seen"}, want: []string{`world_file.motd defaulted added note  "seen"`}, why: "does not set it"},
	{
		name: "set and not set", edit: map[string]any{"text": "by hand", "secret": "canary-one-two", "note": "seen"},
		want: []string{`world_file.motd defaulted added note  "seen"`, `world_file.motd real changed text "as deployed" "by hand"`},
	},
	{name: "deleted", gone: true, want: []string{"world_file.motd real gone .  "}, why: "deleted outside"},
	{
		name: "another one follows", more: "resource \"terraform_data\" \"copy\" { input = world_file.motd.note }\n",
		edit: map[string]any{"text": "as deployed", "secret": "canary-one-two", "note": "seen"},
		want: []string{"terraform_data.copy unknown changed .  ", `world_file.motd defaulted added note  "seen"`}, why: "may follow from what was changed",
	},
	{
		name: "another value each time", more: "resource \"terraform_data\" \"now\" { input = timestamp() }\n",
		want: []string{"terraform_data.now unknown changed .  "}, why: "a plan with the same inputs would update it (input, output)",
	},
	{
		name: "in a list", more: "resource \"world_file\" \"many\" {\n  count = 2\n  path = \"${var.dir}/many${count.index}\"\n  text = \"as deployed\"\n}\n", gone: true,
		want: []string{"world_file.motd real gone .  "},
	},
}

func TestDrifted(t *testing.T) {
	t.Parallel()
	for i, sc := range driftScenes {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join("testdata", "drift", strings.ReplaceAll(sc.name, " ", "-")+".json")
			if *record {
				recordDrift(t, i, path)
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var plan tfjson.Plan
			plan.UseJSONNumber(true)
			if err := json.Unmarshal(raw, &plan); err != nil {
				t.Fatal(err)
			}
			report := drifted(&plan)
			var got, why []string
			for _, f := range report.Findings {
				for _, d := range f.Differences {
					got, why = append(got, fmt.Sprintf("%s %s %s %s %s %s", f.Address(), d.Class, d.What, d.Path, d.Want, d.Have)), append(why, d.Why)
				}
			}
			if diff := cmp.Diff(sc.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
			if !strings.Contains(strings.Join(why, "\n"), sc.why) {
				t.Errorf("it does not say %q: %q", sc.why, why)
			}
			shown, err := json.Marshal(report)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(shown), "canary") {
				t.Errorf("the report holds a secret: %s", shown)
			}
		})
	}
}

// recordDrift plays a scene with the real Terraform.
func recordDrift(t *testing.T, scene int, path string) {
	t.Helper()
	sc, dir, world := driftScenes[scene], t.TempDir(), t.TempDir()
	config := terraformtest.Mirror(t, t.TempDir())
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(driftModule+sc.more), 0o600); err != nil {
		t.Fatal(err)
	}
	terraform := func(args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "terraform", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "TF_CLI_CONFIG_FILE="+config, "TF_VAR_dir="+world, "CHECKPOINT_DISABLE=1")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("terraform %s: %v\n%s", args[0], err, out)
		}
		return out
	}
	terraform("init", "-no-color")
	terraform("apply", "-no-color", "-auto-approve")
	file := filepath.Join(world, "motd")
	if sc.gone {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	if sc.edit != nil {
		raw, err := json.Marshal(sc.edit)
		if err == nil {
			err = os.WriteFile(file, raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	terraform("plan", "-no-color", "-lock=false", "-out=plan")
	shown := strings.ReplaceAll(string(terraform("show", "-json", "plan")), world, "/world")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(shown), 0o644); err != nil {
		t.Fatal(err)
	}
}

// What only one side marks as sensitive is hidden on both.
func TestEitherSideHides(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, a, b, want string
	}{
		{name: "none", a: `{}`, b: `{}`, want: `{}`},
		{name: "the first", a: `{"x": true}`, b: `{}`, want: `{"x": true}`},
		{name: "the second", a: `{}`, b: `{"x": {"y": true}}`, want: `{"x": {"y": true}}`},
		{name: "all of one", a: `true`, b: `{"x": true}`, want: `true`},
		{name: "lists of two lengths", a: `[false, true]`, b: `[true]`, want: `[true, true]`},
		{name: "two shapes", a: `[true]`, b: `{"x": true}`, want: `true`},
		{name: "a shape and none", a: `false`, b: `[{"x": true}]`, want: `[{"x": true}]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			read := func(text string) (v any) {
				if err := json.Unmarshal([]byte(text), &v); err != nil {
					t.Fatal(err)
				}
				return v
			}
			if diff := cmp.Diff(read(tc.want), either(read(tc.a), read(tc.b))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
