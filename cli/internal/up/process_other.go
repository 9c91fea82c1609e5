//go:build !linux

package up

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// waitInterval is how often a process is looked for where the system has no
// way to wait for one that is not a child.
const waitInterval = 100 * time.Millisecond

// startOf reads when a process started, to the second. A zombie has ended.
func startOf(pid int) (string, error) {
	out, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	state, started, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || state == "" || strings.HasPrefix(state, "Z") {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return strings.TrimSpace(started), nil
}

// wait returns nil when the process is gone, or the context's error.
func (p Process) wait(ctx context.Context) error {
	tick := time.NewTicker(waitInterval)
	defer tick.Stop()
	for p.Running() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
