package follow

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Without a terminal a step's progress is printed at most once in 30 s.
func TestProgressIsPrintedNowAndThen(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.Local)
	var got []string
	told := printed{}
	for second := 0; second <= 70; second += 5 {
		now := start.Add(time.Duration(second) * time.Second)
		w := ctlapi.Workflow{Steps: []ctlapi.Step{
			{ID: "stp_1", Name: "sandbox", State: ctlapi.StepStateSucceeded, Progress: &ctlapi.StepProgress{What: "a.b"}},
			{ID: "stp_2", Name: "component/db", State: ctlapi.StepStateRunning},
		}}
		if second >= 20 {
			w.Steps[1].Progress = &ctlapi.StepProgress{What: "aws_db_instance.main", Doing: "creating", StartedAt: start, ReportedAt: now, Done: 4, Total: 12}
		}
		got = append(got, told.due(w, now)...)
	}
	want := []string{
		"10:00:20  component/db: aws_db_instance.main: creating, 20 s (4 of 12)",
		"10:00:50  component/db: aws_db_instance.main: creating, 50 s (4 of 12)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
