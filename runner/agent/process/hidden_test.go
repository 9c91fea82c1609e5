package process_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/runner/agent/launcher"
	"github.com/berth-dev/berth/runner/agent/process"
)

const (
	engineUser = 85001
	diskUser   = 85000
)

// place is a data directory with a job in it, next to other things. As root
// that has a user of its own, else a user namespace.
func place(t testing.TB, files int) (data string, s process.Spec) {
	t.Helper()
	base, err := os.MkdirTemp("", "berth-hidden-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	data = filepath.Join(base, "data")
	folder := filepath.Join(data, "jobs", "a.1", "engine")
	for _, dir := range []string{folder + "/in", folder + "/out", data + "/install", data + "/jobs/b.1/engine"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for n := range files {
		if err := os.WriteFile(fmt.Sprintf("%s/in/%03d", folder, n), []byte("given"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(data+"/identity", []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	s = process.Spec{
		Path: "/bin/sh", Dir: folder, Env: []string{"PATH=/usr/bin:/bin", "DATA=" + data}, Launcher: self(t),
		Sight: &launcher.Sight{Data: data, Folder: folder, Scratch: data + "/install"},
	}
	if os.Geteuid() == 0 {
		placeAsRoot(t, data, &s)
	} else {
		s.Isolation = process.Isolation{PIDNamespace: true, Hidden: true, OwnUsers: true}
		s.Sight.Open = []string{"out"}
		if err := process.Narrow(s.Sight, os.Geteuid(), filepath.Dir(self(t))); err != nil {
			t.Fatal(err)
		}
	}
	if err := process.Try(s); err != nil {
		if errors.Is(err, launcher.ErrNoIDMap) || s.Isolation.OwnUsers && exec.CommandContext(t.Context(), "unshare", "-Urpfm", "--mount-proc", "true").Run() != nil {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	return data, s
}

func placeAsRoot(t testing.TB, data string, s *process.Spec) {
	t.Helper()
	chown := func(uid int, paths ...string) {
		for _, path := range paths {
			if err := os.Chown(path, uid, uid); err != nil {
				t.Fatal(err)
			}
		}
	}
	folder := s.Sight.Folder
	chown(engineUser, folder, folder+"/in", folder+"/out")
	chown(diskUser, data+"/install")
	maps := process.NewUserMaps(self(t), diskUser)
	t.Cleanup(func() { _ = maps.Close() })
	var err error
	if s.ScratchMap, err = maps.For(engineUser); err != nil {
		t.Skip(err)
	}
	s.Isolation = process.Isolation{UID: engineUser, GID: engineUser, PIDNamespace: true, Hidden: true}
	s.Sight.Closed = []string{"in"}
	s.Sight.Private, s.Sight.Keep = process.Private(filepath.Dir(self(t)))
}

// What is empty, and what of it stays, follows from who owns it.
func TestNarrow(t *testing.T) {
	t.Parallel()
	base, err := os.MkdirTemp("", "berth-narrow-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	tool := filepath.Join(base, "tool")
	if err := os.WriteFile(tool, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(base, "data")
	const stranger = 83999
	sight := launcher.Sight{Data: data}
	if err := process.Narrow(&sight, stranger, tool, data, base, home, "/usr/bin", "relative", base+"/absent"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{tool}, slices.DeleteFunc(sight.Keep, func(path string) bool { return !strings.HasPrefix(path, base) && path != home })); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if !sight.Strict || !slices.Contains(sight.Private, "/tmp") {
		t.Errorf("sight = %+v", sight)
	}
	for path, empty := range map[string]bool{"/home": true, "/root": true, "/var": true, "/run": true, "/usr": false, "/etc": false, "/opt": false, "/proc": false, "/tmp": false} {
		if _, err := os.Lstat(path); err == nil && slices.Contains(sight.Empty, path) != empty {
			t.Errorf("%s is empty: %v, want %v", path, !empty, empty)
		}
	}
	// To an agent of the user who owns the system, all of that is its own.
	sight = launcher.Sight{Data: data}
	if err := process.Narrow(&sight, 0); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(sight.Empty, "/etc") || !slices.Contains(sight.Empty, "/usr") {
		t.Errorf("what the user owns is shown: %v", sight.Empty)
	}
}

func TestHidden(t *testing.T) {
	t.Parallel()
	data, s := place(t, 1)
	out, err := os.Create(filepath.Join(filepath.Dir(data), "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	s.Stdout, s.Stderr = out, out
	s.Args = []string{"-c", `exec 2>&1
echo "user $(id -u) $(id -g) $(id -G), process $$"
ls $DATA $DATA/jobs $DATA/jobs/a.1 | tr '\n' ' '; echo
cat in/000 && echo
{ echo x >in/000; } 2>/dev/null || echo in is closed
{ echo x >$DATA/x; } 2>/dev/null || echo data is closed
echo made >$DATA/install/made && stat -c 'scratch %u' $DATA/install/made
pwd
ls -A /tmp | grep -v -e '^go-build' -e ` + strings.Split(data, "/")[2] + `
ls /proc/self/fd | tr '\n' ' '; echo
exit 7`}
	p, err := process.Start(s)
	if err != nil {
		t.Fatal(err)
	}
	ended(t, p)
	raw, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	user, disk := engineUser, diskUser
	if s.Isolation.OwnUsers {
		user, disk = os.Geteuid(), os.Geteuid()
	}
	want := fmt.Sprintf(`user %[1]d %[1]d %[1]d, process 1
%[2]s: install jobs  %[2]s/jobs: a.1  %[2]s/jobs/a.1: engine 
given
in is closed
data is closed
scratch %[1]d
%[2]s/jobs/a.1/engine
0 1 2 3 
`, user, data)
	if string(raw) != want || p.ExitCode() != 7 {
		t.Errorf("exit code %d; it said\n%s\nwant\n%s", p.ExitCode(), raw, want)
	}
	if got, err := exec.CommandContext(t.Context(), "stat", "-c", "%u %U", data+"/install/made").Output(); err != nil || !strings.HasPrefix(string(got), fmt.Sprint(disk)) {
		t.Errorf("on disk it belongs to %s (%v), want %d", got, err, disk)
	}
}

// An engine that cannot be started says why, and nothing is left.
func TestHiddenFails(t *testing.T) {
	t.Parallel()
	data, s := place(t, 0)
	for name, tc := range map[string]struct {
		change func(*process.Spec)
		want   string
	}{
		"no executable": {func(s *process.Spec) { s.Path = data + "/none" }, "no such file"},
		"a symlink in the place of the folder": {func(s *process.Spec) {
			link := data + "/jobs/link"
			if err := os.Symlink("/etc", link); err != nil {
				t.Fatal(err)
			}
			s.Sight.Folder = link + "/ssl"
		}, "not a directory"},
		"a folder elsewhere": {func(s *process.Spec) { s.Sight.Folder = "/etc" }, "/etc is not in " + data},
	} {
		spec := s
		sight := *s.Sight
		spec.Sight = &sight
		spec.Args = []string{"-c", "exit 0"}
		tc.change(&spec)
		if p, err := process.Start(spec); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %+v, %v, want an error with %q", name, p, err, tc.want)
		}
	}
}

// BenchmarkStart compares what it takes until an engine is the process, for a
// folder of a hundred files: one that sees everything, one that is hidden from,
// and one that is hidden from and has limits, whose launcher was there already.
func BenchmarkStart(b *testing.B) {
	_, hidden := place(b, 100)
	hidden.Path, hidden.Args = "/bin/true", nil
	limited := hidden
	var err error
	if limited.Group, err = process.NewGroup(fmt.Sprintf("bench-%d", os.Getpid()), process.Limits{PIDs: 1000}); err != nil {
		b.Skip(err)
	}
	b.Cleanup(limited.Group.Remove)
	plain := process.Spec{Path: hidden.Path, Dir: hidden.Dir, Env: hidden.Env, Isolation: process.Isolation{PIDNamespace: true}}
	start := func(s process.Spec) func() (*process.Process, error) {
		return func() (*process.Process, error) { return process.Start(s) }
	}
	for _, bc := range []struct {
		name  string
		start func(b *testing.B) func() (*process.Process, error)
	}{
		{"plain", func(*testing.B) func() (*process.Process, error) { return start(plain) }},
		{"hidden", func(*testing.B) func() (*process.Process, error) { return start(hidden) }},
		{"limited", func(*testing.B) func() (*process.Process, error) { return start(limited) }},
		{"limited and ahead", func(b *testing.B) func() (*process.Process, error) {
			l, err := process.Prepare(limited)
			if err != nil {
				b.Fatal(err)
			}
			time.Sleep(between)
			return func() (*process.Process, error) { return l.Start(limited.Env) }
		}},
	} {
		b.Run(bc.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				time.Sleep(between)
				begin := bc.start(b)
				b.StartTimer()
				p, err := begin()
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				<-p.Done()
				b.StartTimer()
			}
		})
	}
}

// between two starts there is some time, as between jobs: the kernel is quicker
// with what it did a moment ago.
const between = 30 * time.Millisecond

func TestLaunchAhead(t *testing.T) {
	t.Parallel()
	_, s := place(t, 0)
	s.Args = []string{"-c", `exit $CODE`}
	l, err := process.Prepare(s)
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.Start([]string{"CODE=4"})
	if err != nil {
		t.Fatal(err)
	}
	l.Cancel() // too late, and no harm
	ended(t, p)
	if p.ExitCode() != 4 {
		t.Errorf("exit code %d, want 4: its environment comes with its start", p.ExitCode())
	}

	marker := fmt.Sprintf("cancelled-%d", os.Getpid())
	s.Args = []string{"-c", marker}
	if l, err = process.Prepare(s); err != nil {
		t.Fatal(err)
	}
	if _, found := process.Find("-c", marker); !found {
		t.Error("the launcher is not there")
	}
	l.Cancel()
	if id, found := process.Find("-c", marker); found {
		t.Errorf("process %d is left of a start that was called off", id.PID)
	}
}

// A launcher that was killed while it waited gives no engine, and says so.
func TestLaunchKilledBefore(t *testing.T) {
	t.Parallel()
	_, s := place(t, 0)
	marker := fmt.Sprintf("killed-%d", os.Getpid())
	s.Args = []string{"-c", marker}
	l, err := process.Prepare(s)
	if err != nil {
		t.Fatal(err)
	}
	id, found := process.Find("-c", marker)
	if !found {
		t.Fatal("the launcher is not there")
	}
	if err := syscall.Kill(id.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for process.Alive(id) {
		time.Sleep(time.Millisecond)
	}
	if p, err := l.Start(nil); err == nil {
		t.Errorf("an engine %+v without a launcher", p.ID())
	}
}
