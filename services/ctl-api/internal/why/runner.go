package why

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// SwitchText says where the customer's switch stands, since when and why; "" while
// it lets everything pass.
func SwitchText(r ctldb.Runner) string {
	if r.Switch == "" || r.Switch == "run" {
		return ""
	}
	text := "the customer's switch is at " + r.Switch
	if r.SwitchSince != nil {
		text += " since " + r.SwitchSince.UTC().Format(time.RFC3339)
	}
	if reason := optional.Value(r.SwitchReason); reason != "" {
		text += ": " + reason
	}
	return text
}

// switchHolds tells whether the customer's switch keeps a job from being begun.
func switchHolds(r ctldb.Runner, mutates bool) bool {
	switch r.Switch {
	case "", "run":
		return false
	case "read_only":
		return mutates
	}
	return true
}

// RunnerProblem is what keeps a runner from working, for people; "" for nothing.
// That two processes hold its key comes before all that one of them says.
func RunnerProblem(r ctldb.Runner) string {
	if r.DisputedSince != nil {
		wayBack := "berth-runner replace --recovery FILE"
		if r.Kind == model.BuildRunner {
			wayBack = "berth runners revoke " + r.ID + ", and the next build makes another"
		}
		return fmt.Sprintf("the runner is disputed since %s: two processes hold its key (%s); it gets no work until another machine takes its place: %s",
			r.DisputedSince.UTC().Format(time.RFC3339), optional.Value(r.DisputedReason), wayBack)
	}
	var facts struct {
		Problem string `json:"problem"`
	}
	_ = json.Unmarshal(r.Facts, &facts) // a runner may write anything there
	return facts.Problem
}
