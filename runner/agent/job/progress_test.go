package job

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
)

func TestWhatIsToldOfProgress(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	known := newSecrets()
	known.add("correct-horse-battery", "")
	long := strings.Repeat("x", maxProgressText)
	for _, tc := range []struct {
		name string
		in   jobspec.Progress
		want runnerapi.JobProgress
	}{
		{"as it is", jobspec.Progress{What: "aws_db_instance.main", Doing: "creating", Since: now.Add(-190 * time.Second), Done: 4, Total: 12},
			runnerapi.JobProgress{What: "aws_db_instance.main", Doing: "creating", Seconds: 190, Done: 4, Total: 12}},
		{"a key of for_each is a secret", jobspec.Progress{What: `a.b["correct-horse-battery"]`, Since: now}, runnerapi.JobProgress{What: `a.b["(redacted)"]`}},
		{"a secret across the cut", jobspec.Progress{What: long[:185] + "correct-horse-battery", Since: now}, runnerapi.JobProgress{What: long[:185] + "(redacted)"}},
		{"too long", jobspec.Progress{Doing: long + "y", Since: now}, runnerapi.JobProgress{Doing: long[1:] + "…"}},
		{"not printable", jobspec.Progress{What: "a\x00b\n\x1b[31mc\u202e", Since: now}, runnerapi.JobProgress{What: "a b [31mc"}},
		{"not possible", jobspec.Progress{Since: now.Add(time.Hour), Done: -1, Total: 1 << 40}, runnerapi.JobProgress{Total: maxProgressCount}},
		{"no time", jobspec.Progress{}, runnerapi.JobProgress{Seconds: maxProgressSeconds}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, tell(tc.in, known.set.String, now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
