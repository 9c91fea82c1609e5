package heldback_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/services/runner-api/internal/heldback"
)

func TestWhy(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		facts heldback.Facts
		want  string // part of it, "" when the attempt may begin
	}{
		{"nothing is against it", heldback.Facts{Action: "repair"}, ""},
		{"a change has the lock", heldback.Facts{Locked: "web"}, "locked web"},
		{"a workflow runs", heldback.Facts{Workflow: 7}, "workflow 7"},
		{"one more fits", heldback.Facts{Running: heldback.AtOnce - 1, Failed: heldback.FailedInAnHour - 1}, ""},
		{"too many at once", heldback.Facts{Running: heldback.AtOnce}, "run in 10 installs"},
		{"the action does not help", heldback.Facts{Failed: heldback.FailedInAnHour, Action: "repair"}, "action repair did not help in 3 installs"},
		{"the install's own change is named first", heldback.Facts{Locked: "web", Running: 99, Failed: 99}, "locked web"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := heldback.Why(tc.facts); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("Why = %q, want %q", got, tc.want)
			}
		})
	}
}
