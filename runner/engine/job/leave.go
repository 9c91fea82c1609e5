package job

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// leaveRetry is how often a file that found no room is tried again.
const leaveRetry = time.Second

// Leave does a write of what the engine hands over. On a full disk it waits for
// room: what was done is known here only, and without it would be uncertain. Who
// ends ctx gets the error at once.
func (j *Job) Leave(ctx context.Context, write func() error) error {
	for try := 0; ; try++ {
		err := write()
		if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
			return err
		}
		if try == 0 {
			fmt.Fprintf(j.Stderr, "disk full: what was done cannot be written down, waiting for room: %v\n", err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(leaveRetry):
		}
	}
}

// LeaveJSON is Leave of v as JSON in out/name.
func (j *Job) LeaveJSON(ctx context.Context, name string, v any) error {
	return j.Leave(ctx, func() error { return WriteJSON(j.Out(name), v) })
}
