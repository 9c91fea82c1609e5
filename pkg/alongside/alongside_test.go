package alongside_test

import (
	"testing"

	"github.com/berth-dev/berth/pkg/alongside"
)

func TestRun(t *testing.T) {
	t.Parallel()
	wait := alongside.Run(func() int { return 7 })
	if first, second := wait(), wait(); first != 7 || second != 7 {
		t.Errorf("waiting twice gave %d and %d, want 7", first, second)
	}
}

// A panic of what runs alongside must reach the one who waits, whose recovery
// answers for one request, and not end the process.
func TestRunPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if got := recover(); got != "boom" {
			t.Errorf("waiting panicked with %v, want boom", got)
		}
	}()
	alongside.Run(func() int { panic("boom") })()
	t.Error("waiting did not panic")
}
