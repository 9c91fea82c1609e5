package explain

import (
	"fmt"
	"strings"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/why"
	"github.com/berth-dev/berth/services/internal/optional"
)

// View puts an answer as the contract does, with one line for all of it.
func View(a Answer) apigen.Why {
	if a.Stands == "" {
		a.Stands = "waits for nothing"
	}
	out := apigen.Why{Summary: a.Name + " " + a.Stands, Items: []apigen.WhyItem{}}
	decisions := 0
	for _, r := range a.Reasons {
		if r.Code == why.CodeDecision {
			decisions++
		}
		out.Items = append(out.Items, apigen.WhyItem{
			What: r.What, ID: optional.Of(r.ID), Code: apigen.WhyCode(r.Code), Reason: r.Reason, Who: apigen.WhyWho(r.Who), On: optional.Of(r.On),
			WokenBy: apigen.WhyWaker(r.WokenBy), Deadline: r.Deadline, RetryAt: r.RetryAt, Unblock: optional.Of(r.Unblock),
			Holders: turns(r.Holders), Queue: turns(r.Queue),
		})
	}
	others := len(a.Reasons) - decisions
	switch {
	case len(a.Reasons) == 1:
		first := a.Reasons[0]
		out.Summary = fmt.Sprintf("%s: %s: %s", a.Name, first.What, first.Reason)
		if about := " " + a.Name; strings.HasSuffix(" "+first.What, about) || strings.HasSuffix(about, " "+first.What) { // about the thing itself
			out.Summary = a.Name + ": " + first.Reason
		}
	case len(a.Reasons) > 1 && a.Reasons[0].Code == why.CodeNeeds: // what holds the others comes after it
		out.Summary = a.Name + ": " + a.Reasons[0].Reason
	case decisions > 0:
		out.Summary = fmt.Sprintf("%s waits for %s", a.Name, count(decisions, "decision"))
		if others > 0 {
			out.Summary += " and " + count(others, "other thing")
		}
	case len(a.Reasons) > 0:
		out.Summary = fmt.Sprintf("%s: %d things to look at", a.Name, len(a.Reasons))
	}
	return out
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func turns(rows []why.Turn) (out []apigen.ResourceTurn) {
	for _, t := range rows {
		out = append(out, apigen.ResourceTurn{
			Change: t.Change, Workflow: t.Workflow, WorkflowKind: apigen.WorkflowKind(t.WorkflowKind), Step: t.Step, CreatedBy: t.By, Since: t.Since,
			WaitsFor: optional.Of(t.WaitsFor),
		})
	}
	return out
}
