package up

import (
	"context"
	"errors"
	"syscall"
	"time"
)

// Process names one process permanently. A pid alone would do for as long as
// the process runs; then the system gives it to somebody else.
type Process struct {
	PID     int    `json:"pid"`
	Started string `json:"started"` // when, and since which boot, in the system's own words
}

// identify names the process that has this pid now.
func identify(pid int) (Process, error) {
	started, err := startOf(pid)
	return Process{PID: pid, Started: started}, err
}

// Running tells whether the process is still there.
func (p Process) Running() bool {
	if p.PID <= 0 {
		return false
	}
	started, err := startOf(p.PID)
	return err == nil && started == p.Started
}

// signal sends to the process, unless it is gone.
func (p Process) signal(sig syscall.Signal) {
	if p.Running() {
		_ = syscall.Kill(p.PID, sig) // it may just have ended, which is fine
	}
}

// end asks the process to stop, and kills it when it does not within grace. It
// returns once the process is gone; killed says that it had to be.
func (p Process) end(polite syscall.Signal, grace time.Duration) (killed bool) {
	p.signal(polite)
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if err := p.wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	p.signal(syscall.SIGKILL)
	// A killed process is gone soon, but for one that sleeps in a dead disk:
	// nobody can end that.
	ctx, cancel = context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	_ = p.wait(ctx)
	return true
}

// killTimeout is how long the kernel may take to remove a killed process.
const killTimeout = 10 * time.Second
