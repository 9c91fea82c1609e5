//go:build unix

package lint_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/lint"
	"github.com/berth-dev/berth/pkg/appconfig/check"
)

// run runs a script as a check of a folder.
func run(t *testing.T, script string, o lint.Options) (dir string, found []string) {
	t.Helper()
	o.Dir = t.TempDir()
	// No other test may start a process meanwhile: it would have the file open for writing
	// until its exec, and a file that is open so cannot be run.
	syscall.ForkLock.RLock()
	err := os.WriteFile(filepath.Join(o.Dir, "check.sh"), []byte("#!/bin/sh\n"+script), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range lint.Run(t.Context(), check.LintCheck{Name: "mine", Command: "check.sh"}, o) {
		found = append(found, string(d.Code)+" "+d.String())
	}
	return o.Dir, found
}

func TestRun(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, script string
		want         []string
	}{
		{"nothing to say", "", nil},
		{
			"two things", `echo '{"file": "sandbox.toml", "line": 2, "col": 3, "severity": "warning", "message": "one"}'; echo; echo '{"severity": "note", "message": "two", "more": 1}'`,
			[]string{"custom/mine sandbox.toml:2:3 warning one", "custom/mine note two"},
		},
		{"what it is given", `read config; test "$config" = '{"a":1}' || exit 9; pwd >/dev/null; test -f check.sh`, nil},
		{"its status", "echo sorry >&2; echo more >&2; exit 3", []string{`custom/mine lint.toml error check "mine" exit status 3: sorry`}},
		{
			"no JSON", `echo '{"severity": "note", "message": "kept"}'; echo nonsense`,
			[]string{"custom/mine note kept", `custom/mine lint.toml error check "mine" wrote something that berth does not understand in line 2: it is not a JSON object with file, line, col, severity and message`},
		},
		{"another severity", `echo '{"severity": "fatal", "message": "x"}'`, []string{`custom/mine lint.toml error check "mine" wrote something that berth does not understand in line 1: severity is none of "error", "warning" and "note"`}},
		{"a file outside", `echo '{"severity": "note", "message": "x", "file": "../x"}'`, []string{`custom/mine lint.toml error check "mine" wrote something that berth does not understand in line 1: file is not a path in the app folder`}},
		{"no message", `echo '{"severity": "note"}'`, []string{`custom/mine lint.toml error check "mine" wrote something that berth does not understand in line 1: the message is missing, or the line or column is negative`}},
		{"too much", "yes '                                                              '", []string{`custom/mine lint.toml error check "mine" wrote more than 1048576 bytes and was stopped`}},
		{"too much on stderr", "i=0; while [ $i -lt 2000 ]; do echo 12345678901234567890 >&2; i=$((i+1)); done; exit 1", []string{`custom/mine lint.toml error check "mine" exit status 1: 12345678901234567890`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, got := run(t, tc.script, lint.Options{Config: []byte(`{"a":1}` + "\n")})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}

func TestManyThings(t *testing.T) {
	t.Parallel()
	_, got := run(t, `i=0; while [ $i -lt 1100 ]; do echo '{"severity": "note", "message": "x"}'; i=$((i+1)); done`, lint.Options{})
	if len(got) != 1001 || !strings.Contains(got[1000], "found more than 1000 things") {
		t.Errorf("%d things are found, the last is %s", len(got), got[len(got)-1])
	}
}

// TestEnvironment holds that a check sees nothing of its caller.
func TestEnvironment(t *testing.T) {
	t.Setenv("BERTH_TOKEN", "secret")
	dir, found := run(t, "env > seen; test -t 0 && echo terminal >> seen; exit 0", lint.Options{Path: "/usr/bin:/bin"})
	seen, err := os.ReadFile(filepath.Join(dir, "seen"))
	if err != nil || len(found) > 0 {
		t.Fatal(err, found)
	}
	for line := range strings.Lines(string(seen)) {
		name, _, _ := strings.Cut(line, "=")
		switch name {
		case "PATH", "LANG", "PWD", "OLDPWD", "SHLVL", "_": // what a shell makes itself
		default:
			t.Errorf("the check sees %s", line)
		}
	}
}

// TestTimeout holds that a check ends with all that it started.
func TestTimeout(t *testing.T) {
	t.Parallel()
	dir, found := run(t, "sleep 600 &\necho $! > child\nsleep 600\n", lint.Options{Timeout: 3 * time.Second})
	if want := []string{`custom/mine lint.toml error check "mine" took longer than 3s and was stopped`}; !cmp.Equal(want, found) {
		t.Errorf("found %q, want %q", found, want)
	}
	ended(t, filepath.Join(dir, "child"))
}

// TestChildrenThatStay holds that a check which ends and leaves a child with its
// pipes neither hangs nor leaves it.
func TestChildrenThatStay(t *testing.T) {
	t.Parallel()
	dir, found := run(t, "sleep 600 &\necho $! > child\n", lint.Options{})
	if len(found) != 1 || !strings.Contains(found[0], "lint.toml error") {
		t.Errorf("found %q", found)
	}
	ended(t, filepath.Join(dir, "child"))
}

// ended waits until the process whose number is in a file is gone.
func ended(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if syscall.Kill(pid, 0) != nil || err == nil && strings.Contains(string(stat), ") Z ") {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("process %d is still there", pid)
		}
	}
}
