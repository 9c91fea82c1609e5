// Package policies keeps what rules say of plans, as runners report it: one row for each
// policy and change.
package policies

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Side says whose rules they are.
type Side string

// The sides.
const (
	Vendor   Side = "vendor"
	Customer Side = "customer"
)

// MaxFindings is how many findings of one policy are kept for one change.
const MaxFindings = 100

// Report is what one policy says of a plan.
type Report struct {
	Side     Side
	Policy   string
	Answer   policy.Answer
	Severity string
	Counts   map[policy.Result]int
	// Findings stand against the plan, the worst first; Left is how many more do.
	Findings []policy.Verdict
	Left     int
}

// Of gives one report for each policy that looked at a plan, by side and name.
func Of(j policy.Judgement) []Report {
	return append(reports(Vendor, j.Vendor, policy.Deny), reports(Customer, j.Guardrails, policy.Ask)...)
}

// reports are those of one side; doubt is what follows from a verdict that is neither yes
// nor no.
func reports(side Side, verdicts []policy.Verdict, doubt policy.Answer) []Report {
	by := map[string][]policy.Verdict{}
	for _, v := range verdicts {
		by[v.Policy] = append(by[v.Policy], v)
	}
	var out []Report
	for _, name := range slices.Sorted(maps.Keys(by)) {
		r := Report{Side: side, Policy: name, Answer: policy.Decide(by[name], doubt), Counts: map[policy.Result]int{}}
		for _, v := range by[name] {
			r.Counts[v.Result]++
			if r.Severity == "" {
				r.Severity = v.Severity
			}
		}
		r.Findings = policy.Against(by[name], doubt)
		if len(r.Findings) > MaxFindings {
			r.Findings, r.Left = r.Findings[:MaxFindings], len(r.Findings)-MaxFindings
		}
		out = append(out, r)
	}
	return out
}

// Keep writes the reports of a planned change down, once. Nothing is written of a plan
// that no rules looked at.
func Keep(ctx context.Context, tx *database.Tx, c ctldb.Change, plan *model.Plan) error {
	if plan.Judgement == nil {
		return nil
	}
	for _, r := range Of(*plan.Judgement) {
		findings, err := json.Marshal(append([]policy.Verdict{}, r.Findings...))
		if err != nil {
			return err
		}
		count := func(result policy.Result) int32 { return int32(r.Counts[result]) }
		err = tx.InsertPolicyReport(ctx, ctldb.InsertPolicyReportParams{
			InstallID: c.InstallID, ChangeID: c.ID, Side: string(r.Side), Policy: r.Policy, Engine: plan.Judgement.Engine, Answer: string(r.Answer), Severity: r.Severity,
			Passed: count(policy.Pass), Failed: count(policy.Fail), Warned: count(policy.Warning), Errored: count(policy.Error), Skipped: count(policy.Skip), Unknown: count(policy.Unknown),
			Findings: findings, FindingsLeft: int32(r.Left),
		})
		if err != nil {
			return fmt.Errorf("keep what policy %s says: %w", r.Policy, err)
		}
	}
	return nil
}
