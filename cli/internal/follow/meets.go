package follow

import (
	"fmt"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

// Meets says, to who just started a workflow, which other one of the install is
// not finished, who started it, and what becomes of the two.
func Meets(other ctlapi.OtherWorkflow, now time.Time) string {
	text := fmt.Sprintf("note: %s started %s %s ago (%s), which is %s; ",
		other.CreatedBy, aKind(other.Kind), Duration(now.Sub(other.CreatedAt)), other.ID, other.State)
	both := strings.Join(other.Resources, ", ")
	switch other.Meeting {
	case ctlapi.OtherWorkflowMeetingWaits:
		text += "this one waits until it has applied " + both + ", and plans that again"
	case ctlapi.OtherWorkflowMeetingSupersedes:
		text += "this one takes its place for " + both
	case ctlapi.OtherWorkflowMeetingApart:
		text += "they change nothing in common"
	}
	return visible.Row(text)
}

// aKind is a kind of workflow with its article.
func aKind(k ctlapi.WorkflowKind) string {
	text := strings.ReplaceAll(string(k), "_", " ")
	if k == ctlapi.WorkflowKindActionRun || k == ctlapi.WorkflowKindInputUpdate {
		return "an " + text
	}
	return "a " + text
}
