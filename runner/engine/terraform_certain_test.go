package engine_test

import (
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// TestFailuresThatComeAgain runs a real Terraform: it is said of a failure that
// something has to be changed first when that is sure, and of no other.
func TestFailuresThatComeAgain(t *testing.T) {
	t.Parallel()
	const again, perhaps = jobspec.ReasonNeedsChange, jobspec.Reason("")
	for _, tc := range []struct {
		name, module string
		apply        bool
		want         jobspec.Reason
		error        string
	}{
		{name: "an argument that is none", module: "resource \"terraform_data\" \"a\" {\n  inputs = 1\n}", want: again, error: "Unsupported argument on main.tf line 2"},
		{name: "a resource that is not declared", module: "output \"a\" {\n  value = terraform_data.b.id\n}", want: again, error: "Reference to undeclared resource on main.tf line 2"},
		{name: "a block that stands there twice", module: "locals {\n  a = 1\n}\nlocals {\n  a = 2\n}", want: again, error: "Duplicate local value definition on main.tf line 5"},
		{name: "a value that its own rule refuses", module: "variable \"a\" {\n  default = \"x\"\n  validation {\n    condition     = var.a == \"y\"\n    error_message = \"Must be y.\"\n  }\n}", want: again, error: "Must be y."},
		{name: "a function that fails", module: "variable \"a\" {\n  default = \"x\"\n}\noutput \"a\" {\n  value = cidrsubnet(var.a, 4, 2)\n}", want: again, error: "invalid CIDR address"},
		{name: "another version of Terraform", module: "terraform {\n  required_version = \"< 1.0\"\n}", want: again, error: "Unsupported Terraform Core version"},
		{name: "a provider that cannot be fetched", module: "terraform {\n  required_providers {\n    a = { source = \"127.0.0.1:1/b/a\" }\n  }\n}", want: perhaps, error: "could not connect to 127.0.0.1:1"},
		{name: "a program that fails in an apply", module: "resource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" {\n    command = \"exit 3\"\n  }\n}", apply: true, want: perhaps, error: "local-exec provisioner error"},
		{name: "a condition on what an apply finds", module: "resource \"terraform_data\" \"a\" {\n  input = timestamp()\n  lifecycle {\n    postcondition {\n      condition     = self.output == \"never\"\n      error_message = \"Not yet.\"\n    }\n  }\n}", apply: true, want: perhaps, error: "Not yet."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			i := newInstall(t, tc.module)
			j := i.plan(t, nil)
			if tc.apply {
				j.must(t)
				j = i.applyOf(t, j)
			}
			r := j.run(t)
			wantContains(t, "error", r.Error, tc.error)
			if r.Outcome != jobspec.OutcomeFailed || r.Reason != tc.want {
				t.Errorf("outcome %s, reason %q, want failed, %q: %s", r.Outcome, r.Reason, tc.want, r.Error)
			}
		})
	}
}

// A state that cannot be read says nothing about the module.
func TestStateThatCannotBeReadMayPass(t *testing.T) {
	t.Parallel()
	i := newInstall(t, greeting)
	j := i.plan(t, map[string]any{"text": "ahoy"})
	j.env["TF_HTTP_ADDRESS"] = "http://127.0.0.1:1/state"
	if r := j.run(t); r.Outcome != jobspec.OutcomeFailed || r.Reason != "" {
		t.Errorf("result %+v", r)
	}
}
