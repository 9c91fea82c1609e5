package engine_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// TestTheStateIsBerths holds that a module which names a place of its own for its state
// is planned and applied with the state in Berth's.
func TestTheStateIsBerths(t *testing.T) {
	t.Parallel()
	for name, block := range map[string]string{
		"s3": "backend \"s3\" {\n    bucket = \"nowhere\"\n    key = \"k\"\n    region = \"r\"\n  }", "cloud": "cloud {\n    organization = \"nobody\"\n  }",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInstall(t, "terraform {\n  "+block+"\n}\nresource \"terraform_data\" \"a\" { input = 1 }\noutput \"a\" { value = terraform_data.a.output }\n")
			plan := i.plan(t, nil)
			plan.must(t)
			wantContains(t, "log", plan.log(t), `main.tf:2: the module keeps its state in "`+name+`"; that block has no effect here`)
			if got := string(i.applyOf(t, plan).must(t).Outputs["a"].Value); got != "1" {
				t.Errorf("the output is %s", got)
			}
			if r := i.plan(t, nil).must(t); !r.NoChange || r.Serial == 0 {
				t.Errorf("planned again it changes something, or Berth has no state: %+v", r)
			}
		})
	}
}

// TestNoModuleWinsTheState tries to have the last word: an override file whose name
// comes after that of Berth's.
func TestNoModuleWinsTheState(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"z_override.tf": "terraform {\n  backend \"local\" {\n    path = \"/tmp/elsewhere\"\n  }\n}\n", "z_override.tf.json": `{"terraform": {"cloud": {"organization": "x"}}}`,
		"override.tf": "terraform {\n  backend \"local\" {}\n}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newInstall(t, "output \"a\" { value = 1 }\n").job(t, jobspec.OperationPlan, jobspec.TerraformModule{})
			j.write(t, "in/artifact/"+name, text)
			r := j.run(t)
			if r.Outcome != jobspec.OutcomeFailed || r.Reason != jobspec.ReasonNeedsChange || !strings.Contains(r.Error, "it declares in an override file where its state is kept") {
				t.Errorf("%s (%s): %s", r.Outcome, r.Reason, r.Error)
			}
		})
	}
}

// TestARehearsalTakesAnyTerraform holds that a required_version which no Terraform here
// fits does not stop a rehearsal, and stops everything else.
func TestARehearsalTakesAnyTerraform(t *testing.T) {
	t.Parallel()
	i := newInstall(t, "terraform {\n  required_version = \"~> 0.13.0\"\n}\nmodule \"c\" {\n  source = \"./child\"\n}\noutput \"real\" { value = module.c.x }\n")
	const child = "terraform {\n  required_version = \"= 1.2.3\"\n}\nresource \"terraform_data\" \"a\" { input = 1 }\noutput \"x\" { value = terraform_data.a.output }\n"
	plan := i.rehearse(t, jobspec.Rehearsal{Outputs: map[string]any{"real": "made up"}})
	plan.write(t, "in/artifact/child/main.tf", child)
	plan.must(t)
	summary := plan.summary(t)
	if first, _, _ := strings.Cut(summary.Text, "\n"); summary.Rehearsed != nil || !strings.HasPrefix(first, jobspec.PlannedWith) || !strings.HasSuffix(first, " instead of ~> 0.13.0.") {
		t.Errorf("the plan is %+v:\n%s", summary.Rehearsed, summary.Text)
	}
	apply := i.applyOf(t, plan)
	apply.write(t, "in/artifact/child/main.tf", child)
	if got := string(apply.must(t).Outputs["real"].Value); got != "1" {
		t.Errorf("the output is %s", got)
	}
	plain := i.plan(t, nil)
	plain.write(t, "in/artifact/child/main.tf", child)
	if r := plain.run(t); r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Error, "Unsupported Terraform Core version") {
		t.Errorf("%s: %s", r.Outcome, r.Error)
	}
}
