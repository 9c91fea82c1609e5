package engine_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// rehearse is the plan of a module in a rehearsal.
func (i *install) rehearse(t *testing.T, r jobspec.Rehearsal) *jobDir {
	t.Helper()
	plan := i.plan(t, nil)
	plan.spec.Kind, plan.spec.Rehearsal = jobspec.KindRehearsal, &r
	return plan
}

func TestStandInGivesTheOutputs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, module string
		standIn      bool
		want         jobspec.Rehearsed
		why          string
	}{
		{name: "for a sandbox", module: `resource "aws_vpc" "main" {}`, standIn: true,
			want: jobspec.Rehearsed{How: jobspec.RehearsedStandIn, MadeUp: []string{"vpc"}}, why: "the sandbox needs a cloud"},
		{name: "for a module whose provider cannot be had", module: "provider \"nowhere\" {}\nresource \"nowhere_thing\" \"a\" {}",
			want: jobspec.Rehearsed{How: jobspec.RehearsedNotPlanned, Providers: []string{"hashicorp/nowhere"}, Unreachable: []string{"hashicorp/nowhere"}, MadeUp: []string{"vpc"}},
			why:  "provider hashicorp/nowhere unreachable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			i := newInstall(t, tt.module)
			outputs := map[string]any{"vpc": map[string]any{"id": "vpc-0"}, "port": 5432, "text": "${not a template} {{ nor this }}"}
			plan := i.rehearse(t, jobspec.Rehearsal{StandIn: tt.standIn, Outputs: outputs, MadeUp: []string{"vpc"}})
			plan.write(t, "none.tfrc", "provider_installation {\n  filesystem_mirror {\n    path = \"/nonexistent\"\n  }\n}\n")
			plan.env["TF_CLI_CONFIG_FILE"] = plan.path + "/none.tfrc"
			plan.must(t)
			summary := plan.summary(t)
			if summary.Rehearsed == nil || !strings.HasPrefix(summary.Rehearsed.Why, tt.why) {
				t.Fatalf("the plan says %+v", summary.Rehearsed)
			}
			summary.Rehearsed.Why = ""
			if diff := cmp.Diff(&tt.want, summary.Rehearsed); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			wantContains(t, "the text of the plan", summary.Text, "Rehearsed (")

			applied := i.applyOf(t, plan).must(t)
			got := map[string]any{}
			for name, o := range applied.Outputs {
				var v any
				if err := json.Unmarshal(o.Value, &v); err != nil {
					t.Fatal(err)
				}
				got[name] = v
			}
			if diff := cmp.Diff(map[string]any{"vpc": map[string]any{"id": "vpc-0"}, "port": 5432.0, "text": "${not a template} {{ nor this }}"}, got); diff != "" {
				t.Errorf("outputs (-want +got):\n%s", diff)
			}
			again := i.rehearse(t, jobspec.Rehearsal{StandIn: tt.standIn, Outputs: outputs, MadeUp: []string{"vpc"}})
			again.env["TF_CLI_CONFIG_FILE"] = plan.path + "/none.tfrc"
			if r := again.must(t); !r.NoChange {
				t.Errorf("planned again it changes something:\n%s", again.summary(t).Text)
			}
		})
	}
}

func TestModuleWithoutCloudIsRealInARehearsal(t *testing.T) {
	t.Parallel()
	i := newInstall(t, "resource \"terraform_data\" \"a\" { input = 1 }\noutput \"real\" { value = terraform_data.a.input }")
	plan := i.rehearse(t, jobspec.Rehearsal{Outputs: map[string]any{"real": "made up"}})
	plan.must(t)
	if summary := plan.summary(t); summary.Rehearsed != nil || summary.Objects[0].Address != "terraform_data.a" {
		t.Errorf("the plan is %+v", summary)
	}
	if got := i.applyOf(t, plan).must(t).Outputs["real"]; string(got.Value) != "1" {
		t.Errorf("the output is %s", got.Value)
	}
}

func TestMistakesInTheVariablesOfARehearsedSandboxShow(t *testing.T) {
	t.Parallel()
	i := newInstall(t, `resource "aws_vpc" "main" {}`)
	plan := i.rehearse(t, jobspec.Rehearsal{StandIn: true})
	plan.spec.TerraformModule.Vars = map[string]any{"region": "{{ .nuon.install_stack.outputs.regoin }}"}
	if r := plan.run(t); r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Error, "regoin") {
		t.Errorf("%s: %s", r.Outcome, r.Error)
	}
}

// TestMockedProvider needs a provider that is a program: BERTH_TEST_PROVIDER_MIRROR
// names a folder that has acme/time, built of hashicorp/time.
func TestMockedProvider(t *testing.T) {
	t.Parallel()
	mirror := os.Getenv("BERTH_TEST_PROVIDER_MIRROR")
	if mirror == "" {
		t.Skip("terraform: BERTH_TEST_PROVIDER_MIRROR names no folder with providers")
	}
	i := newInstall(t, `
terraform {
  required_providers {
    time = { source = "acme/time" }
  }
}
variable "days" { type = number }
resource "time_static" "a" {}
resource "time_offset" "b" {
  count       = 2
  offset_days = var.days
}
output "when" { value = time_static.a.rfc3339 }`)
	plan := i.rehearse(t, jobspec.Rehearsal{Outputs: map[string]any{"when": "made up"}, MadeUp: []string{"when"}})
	plan.spec.TerraformModule.Vars = map[string]any{"days": "{{ .nuon.days }}"}
	plan.spec.State = state(t, map[string]any{"days": 3})
	plan.write(t, "mirror.tfrc", "provider_installation {\n  filesystem_mirror {\n    path = \""+mirror+"\"\n  }\n}\n")
	plan.env["TF_CLI_CONFIG_FILE"] = plan.path + "/mirror.tfrc"
	plan.must(t)
	summary := plan.summary(t)
	if summary.Rehearsed == nil || summary.Rehearsed.How != jobspec.RehearsedMocked || summary.Create != 3 {
		t.Fatalf("%+v\n%+v", summary.Rehearsed, summary)
	}
	wantContains(t, "the text of the plan", summary.Text, "create time_offset.b[1]")
	if got := i.applyOf(t, plan).must(t).Outputs["when"]; string(got.Value) != `"made up"` {
		t.Errorf("the output is %s", got.Value)
	}
}
