package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/runner/agent/power"
)

func TestSwitchNote(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	if reason, since := switchNote(power.State{Mode: power.Run}); reason != nil || since != nil {
		t.Errorf("a switch that nobody set: %v, %v", reason, since)
	}
	reason, since := switchNote(power.State{Mode: power.Pause, Reason: strings.Repeat("é", maxReason), At: at})
	if reason == nil || len(*reason) != maxReason || since == nil || !since.Equal(at) {
		t.Errorf("a long reason: %v, %v", reason, since)
	}
	if reason, _ := switchNote(power.State{Reason: "x" + strings.Repeat("é", maxReason)}); len(*reason) != maxReason-1 || !strings.HasSuffix(*reason, "é") {
		t.Errorf("a reason cut within a character ends with %q", (*reason)[len(*reason)-3:])
	}
}
