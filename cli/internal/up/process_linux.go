package up

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// bootID tells a process from one of an earlier boot with the same numbers.
var bootID = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // without it the rest must do
	return strings.TrimSpace(string(id))
})

// startOf reads when a process started, in clock ticks since boot. A zombie has
// ended.
func startOf(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	started, err := startIn(stat)
	if err != nil {
		return "", fmt.Errorf("process %d: %w", pid, err)
	}
	return bootID() + "/" + started, nil
}

// startIn reads the same from the contents of /proc/PID/stat (proc(5)).
func startIn(stat []byte) (string, error) {
	// The name, in parentheses, may hold anything; the fields after it are
	// numbered from 3.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const state, threads, startTime = 0, 20 - 3, 22 - 3
	if len(fields) <= startTime {
		return "", errors.New("unexpected /proc entry")
	}
	// While other threads of it are left, a zombie still has its files and ports.
	if fields[state][0] == 'X' || fields[state][0] == 'Z' && string(fields[threads]) == "1" {
		return "", errors.New("has ended")
	}
	return string(fields[startTime]), nil
}

// wait returns nil when the process is gone, or the context's error.
func (p Process) wait(ctx context.Context) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil || !p.Running() { // asked after opening: the pid is ours now
		if err == nil {
			_ = unix.Close(fd)
		}
		return nil
	}
	defer func() { _ = unix.Close(fd) }()

	// The eventfd wakes the poll when the context ends.
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	defer func() { _ = unix.Close(wake) }()
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(woken)
		_, _ = unix.Write(wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	})
	defer func() {
		if !stop() {
			<-woken // before wake is closed
		}
	}()

	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for process %d: %w", p.PID, err)
		}
		if fds[0].Revents != 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}
