package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// noForbiddenValue is a policy of the vendor in Rego: it denies a plan whose work has the
// value forbidden, and warns about one that has the value odd.
const noForbiddenValue = `package nuon

values contains r.change.after.input.value if some r in input.plan.resource_changes

deny contains msg if {
	"forbidden" in values
	msg := "this value is forbidden"
}

warn contains msg if {
	"odd" in values
	msg := "this value is odd"
}
`

// addPolicy puts a policy into the app folder; the next sync takes it.
func (in *install) addPolicy(name, about, rules string) {
	in.t.Helper()
	dir := filepath.Join(in.app, "policies")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		in.t.Fatal(err)
	}
	ext := map[bool]string{true: ".rego", false: ".yaml"}[strings.HasPrefix(rules, "package ")]
	engine := map[string]string{".rego": "opa", ".yaml": "kyverno"}[ext]
	for file, text := range map[string]string{
		name + ext:     rules,
		name + ".toml": "type = \"" + about + "\"\nengine = \"" + engine + "\"\ncontents = \"./" + name + ext + "\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			in.t.Fatal(err)
		}
	}
}

// TestPolicies holds plans against a policy of the vendor: a denial ends the change although
// everything was approved ahead, an admin overrides it for that one effect, a warning is
// only said.
func TestPolicies(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	in.addPolicy("no-forbidden-value", "terraform_module", noForbiddenValue)

	in.change("forbidden")
	if out := s.must("policies", "list", "probe"); !strings.Contains(out, "no-forbidden-value") {
		t.Errorf("the app's policies:\n%s", out)
	}
	w := in.settled(in.deploy(true, "one").ID)
	if w.State != "failed" || w.Ended == nil || *w.Ended != "denied" {
		t.Fatalf("the deploy: %s", in.explain(w))
	}
	if in.output("one")["value"] == "forbidden" {
		t.Fatal("it was deployed all the same")
	}
	denied := in.changes("denied")
	if len(denied) != 1 || denied[0].Error == nil || !strings.Contains(*denied[0].Error, "this value is forbidden") {
		t.Fatalf("denied: %+v", denied)
	}
	why := s.must("why", "acme")
	if !strings.Contains(why, "this value is forbidden") {
		t.Errorf("why says:\n%s", why)
	}
	var reports []ctlapi.PolicyReport
	if err := json.Unmarshal([]byte(s.must("policies", "report", "--install", "acme", "--answer", "deny", "--side", "vendor", "--output", "json")), &reports); err != nil {
		t.Fatal(err)
	}
	if len(reports) != 1 || reports[0].Policy != "no-forbidden-value" || reports[0].Counts.Fail != 1 || reports[0].ChangeID != denied[0].ID {
		t.Fatalf("reports: %+v", reports)
	}

	s.must("policies", "override", denied[0].ID, "--reason", "agreed on in ticket 4711")
	if w := in.settled(w.ID); w.State != "succeeded" {
		t.Fatalf("with the override: %s", in.explain(w))
	}
	if got := in.output("one")["value"]; got != "forbidden" {
		t.Errorf("with the override it is %v", got)
	}
	if out := s.must("changes", "show", in.changes("applied")[0].ID); !strings.Contains(out, "policies overridden by") || !strings.Contains(out, "ticket 4711") {
		t.Errorf("the change does not show the override:\n%s", out)
	}

	in.change("odd")
	if w := in.settled(in.deploy(true, "one").ID); w.State != "succeeded" {
		t.Fatalf("a warning: %s", in.explain(w))
	}
	if out := s.must("policies", "report", "--install", "acme", "--answer", "warn"); !strings.Contains(out, "no-forbidden-value") {
		t.Errorf("the warning is not reported:\n%s", out)
	}
}
