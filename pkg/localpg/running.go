package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// PID is the process of the server that runs on the data folder, no matter who
// started it; ok is false when none does.
func (c Cluster) PID() (pid int, ok bool) {
	pid, _, ok = c.postmaster()
	return pid, ok
}

// Ready answers nil when the server takes connections. It looks where pg_ctl
// looks: the status in postmaster.pid.
func (c Cluster) Ready() error {
	_, status, ok := c.postmaster()
	switch {
	case !ok:
		return errors.New("not started")
	case status != "ready":
		return errors.New("starting")
	}
	return nil
}

// postmaster reads which server runs on the data folder, and how far it is. A
// server that was killed leaves a file that still says ready, with a pid that
// may be someone else's by now.
func (c Cluster) postmaster() (pid int, status string, ok bool) {
	text, err := os.ReadFile(filepath.Join(c.Data, "postmaster.pid"))
	if err != nil {
		return 0, "", false
	}
	lines := strings.Split(string(text), "\n")
	pid, err = strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || !c.isServer(pid) {
		return 0, "", false
	}
	const statusLine = 7
	if len(lines) > statusLine {
		status = strings.TrimSpace(lines[statusLine])
	}
	return pid, status, true
}

// isServer tells whether a process is a server of this data folder: it works in
// it, or, where the system does not say where, has it among its arguments.
func (c Cluster) isServer(pid int) bool {
	if _, err := os.Stat("/proc/self/cwd"); err == nil {
		cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
		return err == nil && cwd == c.Data
	}
	out, err := exec.CommandContext(context.Background(), "ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(out), c.Data)
}
