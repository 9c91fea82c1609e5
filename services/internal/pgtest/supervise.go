package pgtest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
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
	if err := supervise(home{dir: dir, bin: os.Getenv("BERTH_PG_BIN")}); err != nil {
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
	text, err := os.ReadFile(h.file("data/postmaster.pid"))
	if err != nil {
		return nil //nolint:nilerr // it ended in order, or never started
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil || !h.isOurs(pid) {
		return nil //nolint:nilerr // it went by itself
	}
	if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil {
		return nil //nolint:nilerr // it went by itself
	}
	for deadline := time.Now().Add(stopTimeout); h.isOurs(pid); time.Sleep(pollInterval) {
		if time.Now().After(deadline) {
			return fmt.Errorf("postgres (pid %d) was left by a killed run and does not end", pid)
		}
	}
	return nil
}

// isOurs makes sure that a pid from a file is not someone else's by now.
func (h home) isOurs(pid int) bool {
	if cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err == nil {
		return cwd == h.file("data")
	}
	out, err := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(out), h.file("data"))
}

func (h home) startPostgres() (*exec.Cmd, error) {
	as, err := serverUser()
	if err != nil {
		return nil, err
	}
	data, complete := h.file("data"), h.file("data-complete")
	if _, err := os.Stat(complete); err != nil {
		if err := h.initData(data, as); err != nil {
			return nil, err
		}
		if err := os.WriteFile(complete, nil, 0o644); err != nil {
			return nil, err
		}
	}
	if err := h.ownedDir(h.file("socket"), as, 0o755); err != nil {
		return nil, err
	}
	// Test data may be lost with the machine, so nothing waits for the disk.
	cmd := h.command(as, "postgres", "-D", data,
		"-c", "listen_addresses=", "-c", "unix_socket_directories="+h.file("socket"), "-c", "port=5432",
		"-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off",
		"-c", "max_connections=500", "-c", "shared_buffers=128MB", "-c", "max_wal_size=1GB",
		"-c", "autovacuum_naptime=10min", "-c", "log_min_messages=error", "-c", "jit=off")
	log, err := os.Create(h.file("postgres.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	return cmd, cmd.Start()
}

func (h home) initData(data string, as *syscall.Credential) error {
	if err := os.RemoveAll(data); err != nil {
		return err
	}
	if err := h.ownedDir(data, as, 0o700); err != nil {
		return err
	}
	// With passwords, so that tests log in like the services do, and no other
	// user of the machine does.
	password := h.file("password")
	if err := os.WriteFile(password, []byte(rand.Text()), 0o600); err != nil {
		return err
	}
	if as != nil { // initdb reads it; we are root and may always
		if err := os.Chown(password, int(as.Uid), int(as.Gid)); err != nil {
			return err
		}
	}
	out, err := h.command(as, "initdb", "-D", data, "-U", "postgres", "-A", "scram-sha-256", "--pwfile="+password, "-E", "UTF8", "--locale=C", "--no-sync").CombinedOutput()
	if err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

func (h home) ownedDir(dir string, as *syscall.Credential, mode os.FileMode) error {
	if err := os.MkdirAll(dir, mode); err != nil {
		return err
	}
	if as == nil {
		return nil
	}
	return os.Chown(dir, int(as.Uid), int(as.Gid))
}

func (h home) command(as *syscall.Credential, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(h.bin, name), args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin:" + h.bin, "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	return cmd
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
