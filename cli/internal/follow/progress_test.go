package follow_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	creating := func(began, told time.Duration) *ctlapi.StepProgress {
		return &ctlapi.StepProgress{What: "aws_db_instance.main", Doing: "creating", StartedAt: *ago(began), ReportedAt: *ago(told), Done: 4, Total: 12}
	}
	unknown := creating(5*time.Second, 0)
	unknown.Total, unknown.Doing = 0, "with\x1b[31m red\nlines"
	for _, tc := range []struct {
		name  string
		state ctlapi.StepState
		in    *ctlapi.StepProgress
		want  string
	}{
		{"seconds", "running", creating(45*time.Second, 5*time.Second), "aws_db_instance.main: creating, 45 s (4 of 12)"},
		{"minutes", "running", creating(190*time.Second, 20*time.Second), "aws_db_instance.main: creating, 3m10s (4 of 12)"},
		{"hours", "running", creating(62*time.Minute, 0), "aws_db_instance.main: creating, 1h02m (4 of 12)"},
		{"a clock that is ahead", "running", creating(-time.Minute, 0), "aws_db_instance.main: creating, 0 s (4 of 12)"},
		{"the runner is not heard of", "running", creating(10*time.Minute, 5*time.Minute), "aws_db_instance.main: creating, 5m00s (4 of 12), as of 5 min ago"},
		{"nobody knows of how many", "running", unknown, "aws_db_instance.main: with⟨U+001B⟩[31m red⟨U+000A⟩lines, 5 s"},
		{"nothing is reported", "running", nil, ""},
		{"it ended meanwhile", "succeeded", creating(45*time.Second, 5*time.Second), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := follow.Progress(ctlapi.Step{State: tc.state, Progress: tc.in}, now)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
