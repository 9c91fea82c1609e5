package jobspec_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
)

func TestNotAhead(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	result := jobspec.Result{StartedAt: now.Add(-time.Minute), FinishedAt: now.Add(4 * time.Minute)}
	if as := result; result.NotAhead(now) || !cmp.Equal(as, result) {
		t.Errorf("a clock that is a little off: %+v", result)
	}
	result.FinishedAt, result.FirstInstructionAt = now.AddDate(73, 0, 0), now.Add(6*time.Minute)
	if !result.NotAhead(now) {
		t.Error("times of another century were left")
	}
	want := jobspec.Result{StartedAt: now.Add(-time.Minute), FinishedAt: now, FirstInstructionAt: now}
	if diff := cmp.Diff(want, result); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}
