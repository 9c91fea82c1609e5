package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/pkg/procstat"
)

// bootID tells a process from one of an earlier boot with the same numbers.
var bootID = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // without it the rest must do
	return strings.TrimSpace(string(id))
})

// startOf reads when a process started, in clock ticks since boot. It fails for
// one that has ended.
func startOf(pid int) (string, error) {
	ticks, err := procstat.StartTime(pid)
	if err != nil {
		return "", fmt.Errorf("process %d: %w", pid, err)
	}
	return bootID() + "/" + strconv.FormatUint(ticks, 10), nil
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
