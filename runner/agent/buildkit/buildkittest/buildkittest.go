// Package buildkittest gives tests a real BuildKit: that of a Build Runner, whose
// keeper is the test's own executable.
package buildkittest

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/runner/agent/buildkit"
	"github.com/berth-dev/berth/runner/agent/buildkit/step"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// IfKeeper is the first thing in a TestMain: in the process that keeps a daemon, and
// in those that it starts for RUN steps, it does not return.
func IfKeeper() {
	if filepath.Base(os.Args[0]) == step.Name {
		os.Exit(step.Main(os.Args[1:]))
	}
	if len(os.Args) != 3 || os.Args[1] != "buildkitd" {
		return
	}
	err := buildkit.Keep(os.Args[2])
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Programs is the directory with buildkitd and buildctl. Without one, or without
// what they call, the test skips; where BERTH_BUILDKIT names it, as in CI, it must
// be there.
func Programs(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("BERTH_BUILDKIT")
	if dir == "" {
		_, self, _, _ := runtime.Caller(0)
		dir = filepath.Join(filepath.Dir(self), "../../../../.bin/tools")
		if _, err := os.Stat(filepath.Join(dir, "buildkitd")); err != nil {
			t.Skip("buildkit: it is not built here; dev/scripts/buildkit.sh build does it, in minutes")
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("buildkit: without root it needs ranges of users in /etc/subuid, which test users have not")
	}
	if _, err := exec.LookPath("runc"); err != nil {
		t.Skip("buildkit: there is no runc; dev/scripts/need.sh buildkit installs it")
	}
	return dir
}

// Runner is a data folder of a Build Runner whose agent lives as long as the test.
type Runner struct{ Config buildkit.Config }

// daemons counts those of this process.
var daemons atomic.Int32

// New makes a folder with nothing in it.
func New(t *testing.T, settings buildkit.Settings) *Runner {
	t.Helper()
	dir := t.TempDir()
	lock, err := datadir.Flock(filepath.Join(dir, "lock"), datadir.ErrBusy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Close() })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The users and control groups of a test's daemon are no other's.
	const daemonsOfATest = 61
	uid := os.Getpid()*daemonsOfATest + int(daemons.Add(1))
	r := &Runner{Config: buildkit.Config{
		Settings: settings, Dir: filepath.Join(dir, "buildkit"), Lock: filepath.Join(dir, "lock"),
		Executable: self, Libexec: Programs(t), SearchPath: os.Getenv("PATH"), EngineUID: uid, Log: slog.New(slog.DiscardHandler),
	}}
	if err := os.MkdirAll(r.Config.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(r.Config.Dir, "daemon.log"))
			t.Logf("log of the daemon:\n%s", log)
		}
	})
	return r
}

// Service is an agent's. It ends its daemon with the test.
func (r *Runner) Service(t *testing.T) *buildkit.Service {
	t.Helper()
	s := buildkit.New(r.Config)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Kill ends a process at once.
func Kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
