package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// The private server outlives the test process that happened to start it, as
// `go test ./...` runs many. So it has a parent of its own, the supervisor:
// the test executable run again with superviseEnv set.
//
//	start.lock       held while the server is started or stopped
//	users.lock       held shared by every test process; the kernel lets go of
//	                 it when one ends, also by kill -9
//	supervisor.lock  held by the supervisor
//
// When users.lock is free for a moment, the supervisor stops the server and
// ends. When the supervisor itself is killed, the next test process ends the
// server that was left behind, and starts another.
const (
	superviseEnv = "BERTH_PGTEST_SUPERVISE"

	// go test starts the next package's tests within this time.
	lingerFor = 2 * time.Second

	stopTimeout = 20 * time.Second
)

func init() {
	dir := os.Getenv(superviseEnv)
	if dir == "" {
		return
	}
	h, err := homeAt(dir, os.Getenv("BERTH_PG_BIN"))
	if err == nil {
		err = supervise(h)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func supervise(h home) error {
	if err := os.Unsetenv(superviseEnv); err != nil {
		return err
	}
	self, err := lockFile(h.file("supervisor.lock"), syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer self.Close()
	postgres, err := h.startPostgres()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- postgres.Wait() }()
	for {
		idle := make(chan error, 1)
		go func() { idle <- h.waitUntilUnused() }()
		select {
		case err := <-ended:
			return fmt.Errorf("postgres ended: %w", err)
		case err := <-idle:
			if err != nil {
				return errors.Join(err, stop(postgres.Process, ended))
			}
		}
		stopped, err := h.stopIfUnused(postgres.Process, ended)
		if stopped || err != nil {
			return err
		}
	}
}

// waitUntilUnused returns when no test process has held users.lock at two
// moments, lingerFor apart.
func (h home) waitUntilUnused() error {
	for range 2 {
		users, err := lockFile(h.file("users.lock"), syscall.LOCK_EX)
		if err != nil {
			return err
		}
		users.Close()
		time.Sleep(lingerFor)
	}
	return nil
}

// stopIfUnused stops the server under start.lock, so that a test process that
// comes meanwhile waits and then starts another.
func (h home) stopIfUnused(postgres *os.Process, ended <-chan error) (bool, error) {
	starting, err := lockFile(h.file("start.lock"), syscall.LOCK_EX)
	if err != nil {
		return false, err
	}
	defer starting.Close()
	used, err := lockedByOther(h.file("users.lock"))
	if err != nil || used {
		return false, err
	}
	return true, stop(postgres, ended)
}

func stop(postgres *os.Process, ended <-chan error) error {
	_ = postgres.Signal(syscall.SIGINT) // "fast": ends sessions, then itself
	select {
	case <-ended:
		return nil
	case <-time.After(stopTimeout):
		_ = postgres.Signal(syscall.SIGQUIT)
		<-ended
		return errors.New("postgres had to be stopped hard")
	}
}

// endLeftover ends a server whose supervisor was killed.
func (h home) endLeftover() error {
	pid, ok := h.postgres.PID()
	if !ok {
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil {
		return nil //nolint:nilerr // it went by itself
	}
	for deadline := time.Now().Add(stopTimeout); ; time.Sleep(pollInterval) {
		if now, ok := h.postgres.PID(); !ok || now != pid {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("postgres (pid %d) was left by a killed run and does not end", pid)
		}
	}
}

func (h home) startPostgres() (*exec.Cmd, error) {
	if _, err := h.postgres.Init(context.Background()); err != nil {
		return nil, err
	}
	log, err := os.Create(h.file("postgres.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := h.postgres.Command("max_connections=500", "shared_buffers=128MB", "max_wal_size=1GB",
		"autovacuum_naptime=10min", "log_min_messages=error", "jit=off", "timezone=UTC")
	cmd.Stdout, cmd.Stderr = log, log
	return cmd, cmd.Start()
}

// lockFile opens and locks a file; closing it, or the end of the process,
// unlocks. Children do not inherit it.
func lockFile(name string, how int) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), how)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, err
		}
	}
}

func lockedByOther(name string) (bool, error) {
	f, err := lockFile(name, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, f.Close()
}
