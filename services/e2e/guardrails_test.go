package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// workIsData is a guardrail of the customer's: what the work of the probe keeps is data, so
// that replacing it asks.
const workIsData = `package berth

ask contains msg if {
	some r in input.plan.resource_changes
	r.type == "terraform_data"
	"delete" in r.change.actions
	msg := sprintf("%s would be replaced", [r.address])
}
`

// TestGuardrails has the customer's own rules ask, warn and deny on the local stack, while the
// vendor approves everything ahead.
func TestGuardrails(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	folder := filepath.Join(in.runnerDir(), "guardrails")
	// `berth up` has them warn only, since vendor and customer are one there. Not here.
	if err := os.Remove(filepath.Join(folder, "answers.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "work-is-data.rego"), []byte(workIsData), 0o600); err != nil {
		t.Fatal(err)
	}
	customer := func(args ...string) string {
		t.Helper()
		out, err := in.customer(args...)
		if err != nil {
			t.Fatalf("berth-runner %v: %v\n%s", args, err, out)
		}
		return out
	}
	if out := customer("guardrails", "list"); !strings.Contains(out, "work-is-data") || strings.Contains(out, "IN DOUBT") {
		t.Fatalf("guardrails list:\n%s", out)
	}

	// It asks: nothing happens, although the vendor approved it.
	before := in.effects()
	in.change("asked")
	w := in.deploy(true, "one")
	var change ctlapi.Change
	in.eventually(2*time.Minute, "the customer is asked", func() error {
		at := step(in.workflow(w.ID), "component/one")
		if at.Change == nil {
			return fmt.Errorf("%s", in.explain(in.workflow(w.ID)))
		}
		change.ID = at.Change.ID
		if out, err := in.customer("guardrails", "explain", change.ID); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	if out := customer("guardrails", "explain", change.ID); !strings.Contains(out, "work-is-data (ask)") || !strings.Contains(out, "terraform_data.work would be replaced") || !strings.Contains(out, "guardrails set work-is-data --answer warn") {
		t.Errorf("guardrails explain:\n%s", out)
	}
	in.eventually(time.Minute, "the vendor sees that the customer is asked", func() error {
		if out := s.must("why", "acme"); !strings.Contains(out, "terraform_data.work would be replaced") && !strings.Contains(out, "customer") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	s.must("workflows", "cancel", w.ID)
	in.settled(w.ID)
	if now := in.effects(); !slices.Equal(now, before) {
		t.Fatalf("effects of what the customer has not agreed to: %v", now[len(before):])
	}

	// The customer loosens it: the same deploy goes through, and says so.
	customer("guardrails", "set", "work-is-data", "--answer", "warn", "--for", "1h", "--reason", "we have a copy")
	if w := in.settled(in.deploy(true, "one").ID); w.State != "succeeded" {
		t.Fatalf("with a warning: %s", in.explain(w))
	}
	var reports []struct{ Policy string }
	if err := json.Unmarshal([]byte(s.must("policies", "report", "--install", "acme", "--side", "customer", "--answer", "warn", "--output", "json")), &reports); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(reports, func(r struct{ Policy string }) bool { return r.Policy == "work-is-data" }) {
		t.Errorf("the warning is not reported: %+v", reports)
	}

	// The customer denies it: the runner refuses the plan itself.
	customer("guardrails", "set", "work-is-data", "--answer", "deny", "--reason", "not this quarter")
	before = in.effects()
	in.change("denied")
	w = in.settled(in.deploy(true, "one").ID)
	if text := in.explain(w); w.State == "succeeded" || !strings.Contains(text, "guardrails deny this change") || !strings.Contains(text, "work-is-data") {
		t.Errorf("with a denial: %s", text)
	}
	if now := in.effects(); !slices.Equal(now, before) {
		t.Errorf("effects of what the customer denies: %v", now[len(before):])
	}
	if out := customer("status"); !strings.Contains(out, "guardrails") {
		t.Errorf("status:\n%s", out)
	}
}
