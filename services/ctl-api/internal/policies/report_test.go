package policies_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/services/ctl-api/internal/policies"
)

func TestOf(t *testing.T) {
	t.Parallel()
	bad := policy.Verdict{Policy: "b", Document: "Pod a/b", Result: policy.Fail, On: policy.Warn, Severity: "high"}
	doubt := policy.Verdict{Policy: "b", Document: "Pod a/c", Result: policy.Error, Severity: "high"}
	got := policies.Of(policy.Judgement{
		Vendor:     []policy.Verdict{{Policy: "b", Result: policy.Pass, Severity: "high"}, {Policy: "a", Result: policy.Skip}, bad, doubt},
		Guardrails: []policy.Verdict{doubt},
	})
	want := []policies.Report{
		{Side: policies.Vendor, Policy: "a", Answer: policy.Allow, Counts: map[policy.Result]int{policy.Skip: 1}},
		{Side: policies.Vendor, Policy: "b", Answer: policy.Deny, Severity: "high", Counts: map[policy.Result]int{policy.Pass: 1, policy.Fail: 1, policy.Error: 1},
			Findings: []policy.Verdict{doubt, bad}},
		{Side: policies.Customer, Policy: "b", Answer: policy.Ask, Severity: "high", Counts: map[policy.Result]int{policy.Error: 1}, Findings: []policy.Verdict{doubt}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOfCutsFindings(t *testing.T) {
	t.Parallel()
	many := make([]policy.Verdict, policies.MaxFindings+7)
	for i := range many {
		many[i] = policy.Verdict{Policy: "p", Result: policy.Fail}
	}
	got := policies.Of(policy.Judgement{Vendor: many})
	if len(got) != 1 || len(got[0].Findings) != policies.MaxFindings || got[0].Left != 7 {
		t.Errorf("got %d findings and %d left", len(got[0].Findings), got[0].Left)
	}
}
