package workflow

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/db"
)

// RunnerProblem is what keeps a runner from working, for people; "" for nothing.
// That two processes hold its key comes before all that one of them says.
func RunnerProblem(r db.Runner) string {
	if r.DisputedSince != nil {
		return fmt.Sprintf("the runner is disputed since %s: two processes hold its key (%s); it gets no work until another machine takes its place: "+
			"berth-runner replace --recovery FILE", r.DisputedSince.UTC().Format(time.RFC3339), optional.Value(r.DisputedReason))
	}
	var facts struct {
		Problem string `json:"problem"`
	}
	_ = json.Unmarshal(r.Facts, &facts) // a runner may write anything there
	return facts.Problem
}
