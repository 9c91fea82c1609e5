package follow_test

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func TestMeets(t *testing.T) {
	t.Parallel()
	other := ctlapi.OtherWorkflow{ID: "wfl_1", Kind: "action_run", State: "running", CreatedBy: "ada", CreatedAt: *ago(3 * time.Minute), Resources: []string{"api", "web"}}
	const said = "note: ada started an action run 3 min ago (wfl_1), which is running; "
	for meeting, want := range map[ctlapi.OtherWorkflowMeeting]string{
		ctlapi.OtherWorkflowMeetingWaits:      "this one waits until it has applied api, web, and plans that again",
		ctlapi.OtherWorkflowMeetingSupersedes: "this one takes its place for api, web",
		ctlapi.OtherWorkflowMeetingApart:      "they change nothing in common",
	} {
		other.Meeting = meeting
		if got := follow.Meets(other, now); got != said+want {
			t.Errorf("%s: %q, want %q", meeting, got, said+want)
		}
	}
}
