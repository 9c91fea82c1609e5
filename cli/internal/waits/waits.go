// Package waits shows why something waits: an install, a workflow, a step, a change, a job
// or a run of an action.
package waits

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/id"
)

// Long is the help of `berth why`.
const Long = `Explains why an install is not where it should be, or why one thing waits: a workflow, step, change,
job or run of an action, by its id. Each reason says who can end it, when Berth looks again by itself,
when the wait is over in any case, and the command that ends it. For a change that waits for its turn, the whole queue is
shown. With --output json each reason has a code of a fixed set: docs/reference/waiting.md.`

// View is the answer for programs.
var View = output.View[ctlapi.Why]{Name: func(w ctlapi.Why) string { return w.Summary }}

// IsID tells whether something is the id of what can be explained; else it is an
// install's name or id.
func IsID(ref string) bool {
	for _, prefix := range []string{id.Workflow, id.Step, id.Change, id.Job, id.ActionRun} {
		if strings.HasPrefix(ref, prefix+"_") {
			return true
		}
	}
	return false
}

// Ask asks why something waits.
func Ask(ctx context.Context, client *api.Client, ref string) (*ctlapi.Why, error) {
	resp, err := client.WhyObjectWithResponse(ctx, ref)
	if err != nil {
		return nil, err
	}
	return api.Body(resp.JSON200)
}

// Print shows an answer to a person, in lines of so many columns.
func Print(out io.Writer, columns int, why *ctlapi.Why) {
	show := func(text, indent string) {
		for _, line := range output.Wrap(text, columns, indent) {
			output.Println(out, line)
		}
	}
	show(why.Summary, "  ") // says all of it when there is one thing only
	for i, item := range why.Items {
		line := ends(item)
		switch {
		case len(why.Items) == 1:
		case i == 0 && item.Code == ctlapi.WhyCodeNeeds: // the summary
			line = ""
		case line == "":
			line = "- " + item.What + ": " + item.Reason
		default:
			line = "- " + item.What + ": " + item.Reason + "; " + line
		}
		if line != "" {
			show(line, "  ")
		}
		if n := len(why.Items[:i]); n == 0 || !sameQueue(why.Items[n-1], item) {
			turns(out, item)
		}
		if unblock := api.Value(item.Unblock); unblock != "" {
			output.Println(out, "  try: "+unblock)
		}
	}
}

// ends says on whom something waits, when it is looked at again, and until when; "" for
// nothing to say.
func ends(item ctlapi.WhyItem) string {
	var parts []string
	if item.Code == ctlapi.WhyCodeNeeds {
		return ""
	}
	switch item.Who {
	case ctlapi.WhyWhoOperator, ctlapi.WhyWhoNobody: // the command below is for the reader
	case ctlapi.WhyWhoControlPlane:
		parts = append(parts, "waits for Berth itself")
	case ctlapi.WhyWhoAnotherChange:
		parts = append(parts, "waits for that change")
	default:
		parts = append(parts, "waits for "+api.Value(item.On))
	}
	if item.RetryAt != nil {
		parts = append(parts, "Berth looks again at "+clock(*item.RetryAt))
	}
	if item.Deadline != nil {
		parts = append(parts, "until "+clock(*item.Deadline)+ended[item.Code])
	}
	return strings.Join(parts, ", ")
}

// ended says what happens at a deadline.
var ended = map[ctlapi.WhyCode]string{
	ctlapi.WhyCodeDecision:      ", then it counts as denied",
	ctlapi.WhyCodeLock:          ", then it is planned again",
	ctlapi.WhyCodeStack:         ", then it fails",
	ctlapi.WhyCodeEnrolment:     ", then it fails",
	ctlapi.WhyCodeSecretMissing: ", then it fails",
	ctlapi.WhyCodeAtWork:        " at the latest",
}

// turns shows the queue for a resource: who holds it, and all who wait.
func turns(out io.Writer, item ctlapi.WhyItem) {
	if len(item.Holders)+len(item.Queue) == 0 {
		return
	}
	line := func(place string, t ctlapi.ResourceTurn, since string) {
		output.Println(out, fmt.Sprintf("  %-6s %s  %s  %s by %s, %s %s", place, t.Change, t.Step, t.WorkflowKind, t.CreatedBy, since, clock(t.Since)))
	}
	for _, t := range item.Holders {
		line("holds", t, "since")
	}
	for i, t := range item.Queue {
		line(fmt.Sprintf("%d.", i+1), t, "approved")
	}
}

// sameQueue tells whether two reasons wait in one queue, which is shown once.
func sameQueue(a, b ctlapi.WhyItem) bool {
	same := func(x, y ctlapi.ResourceTurn) bool { return x.Change == y.Change }
	return slices.EqualFunc(a.Holders, b.Holders, same) && slices.EqualFunc(a.Queue, b.Queue, same)
}

func clock(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }
