package follow

import (
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

// heldBy says why the jobs of a workflow wait for its runner, "" when they do not.
func heldBy(w ctlapi.Workflow) string {
	if Finished(w.State) {
		return ""
	}
	return visible.Row(api.Value(w.Held))
}

// HoldLine says why no change is carried out now, although it may be approved; "" for
// no reason.
func HoldLine(w ctlapi.Workflow) string {
	if w.Hold == nil {
		return ""
	}
	return "no change is carried out now: " + visible.Row(w.Hold.Text)
}

// HeldLine is a line about what holds up the jobs of a workflow, where there is no
// tree to see it in; "" when it is nothing, or what was said before.
func HeldLine(w ctlapi.Workflow, said string, now time.Time) string {
	held := heldBy(w)
	if held == "" || held == said {
		return ""
	}
	return now.Local().Format(time.TimeOnly) + "  its jobs wait for the runner: " + held
}
