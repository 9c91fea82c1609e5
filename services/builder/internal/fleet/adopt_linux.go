package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// errNotFound: the lock is held, but not by a process that looks like a runner.
var errNotFound = errors.New("the data directory is in use by an unknown process")

// adopt waits for the end of a runner that is not our child. When ctx ends it
// stops it, as if it were.
func adopt(ctx context.Context, dir dataDir) error {
	pid, handle, err := find(dir)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(handle) }() // it only watches
	ended, err := watch(ctx, handle, -1)
	if err != nil || ended {
		return errors.Join(err, fmt.Errorf("process %d has ended", pid))
	}
	if err := unix.PidfdSendSignal(handle, unix.SIGTERM, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("stop process %d: %w", pid, err)
	}
	if ended, err = watch(context.WithoutCancel(ctx), handle, stopTimeout); err != nil || ended {
		return err
	}
	return unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0)
}

// find looks for the runner of a data directory by its arguments, and holds it:
// its number may be another process's in a moment.
func find(dir dataDir) (pid, handle int, _ error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, 0, err
	}
	for _, file := range files {
		if !runs(file, dir) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		handle, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it has just ended
		}
		if runs(file, dir) {
			return pid, handle, nil
		}
		_ = unix.Close(handle) // it is another process by now
	}
	return 0, 0, errNotFound
}

// runs tells whether a process was started as "… --data DIR".
func runs(cmdline string, dir dataDir) bool {
	text, err := os.ReadFile(cmdline)
	if err != nil {
		return false
	}
	args := bytes.Split(bytes.TrimSuffix(text, []byte{0}), []byte{0})
	return len(args) == 3 && string(args[1]) == "--data" && string(args[2]) == string(dir)
}

// watch waits for the end of a process, of ctx or of the time; a negative time
// has no end.
func watch(ctx context.Context, handle int, limit time.Duration) (ended bool, _ error) {
	end, cancel, err := os.Pipe()
	if err != nil {
		return false, err
	}
	defer end.Close()
	release := context.AfterFunc(ctx, func() { cancel.Close() })
	defer func() {
		if release() {
			cancel.Close()
		}
	}()
	deadline := time.Now().Add(limit)
	for {
		wait := -1
		if limit >= 0 {
			wait = max(0, int(time.Until(deadline).Milliseconds()))
		}
		fds := []unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}, {Fd: int32(end.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, wait)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return false, fmt.Errorf("wait for process: %w", err)
		default:
			return n > 0 && fds[0].Revents != 0, nil
		}
	}
}
