package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestNewerExecutables replaces the executables of a running Berth in the middle of
// an apply, as a build or an upgrade does, and calls `berth up` again: everything
// runs the newer ones then, and the deploy ends well.
func TestNewerExecutables(t *testing.T) {
	t.Parallel()
	bin := privateExecutables(t)
	s := startFrom(t, bin)
	in := s.probe("acme")
	pids := func() map[string]int {
		found := map[string]int{}
		for _, p := range s.parts() {
			found[p.Name] = p.PID
		}
		return found
	}
	before := pids()

	_, said, code := s.run("up", "--detach")
	if code != 0 || !strings.Contains(said, "already running") {
		t.Fatalf("nothing is newer: exit %d\n%s", code, said)
	}
	for name, pid := range pids() {
		if pid != before[name] {
			t.Errorf("%s was started again although nothing is newer", name)
		}
	}

	in.change("upgraded")
	release := in.hold()
	w := in.deploy(true, "one")
	in.sinceEffect("begin one upgraded")
	newer := []string{"ctl-api", "runner", "engine"}
	for _, name := range newer {
		newerExecutable(t, filepath.Join(bin, "berth-"+name))
	}
	_, said, code = s.run("up", "--detach")
	t.Logf("berth up\n%s", said)
	if code != 0 || !strings.Contains(said, "on disk, for ctl-api, runner acme;") || !strings.Contains(said, "stopped runner acme, ") {
		t.Fatalf("exit %d, and not said what is older and what was stopped:\n%s", code, said)
	}
	release()
	in.back("agent")
	after := pids()
	for name, pid := range before {
		if after[name] == pid || after[name] == 0 {
			t.Errorf("%s: pid %d before, %d after", name, pid, after[name])
		}
	}
	for name, exe := range map[string]string{"ctl-api": "berth-ctl-api", "runner acme": "berth-runner"} {
		if runs, err := os.Readlink("/proc/" + strconv.Itoa(after[name]) + "/exe"); err != nil || runs != filepath.Join(bin, exe) {
			t.Errorf("%s runs %s (%v), not the newer one", name, runs, err)
		}
	}
	if got := in.settled(w.ID); got.State != "succeeded" {
		t.Fatalf("the deploy that was under way: %s", in.explain(got))
	}
	in.plannedAgain(w.ID)
	in.eventually(goOnTimeout, "acme is live and healthy", func() error {
		var got struct{ State, Health string }
		in.get("/installs/acme", &got)
		if got.State != "live" || got.Health != "healthy" {
			return fmt.Errorf("it is %s and %s", got.State, got.Health)
		}
		return nil
	})
}

// newerExecutable puts another file in the place of an executable, which does the
// same: the loader ignores what follows a program.
func newerExecutable(t *testing.T, path string) {
	t.Helper()
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", append(program, '\n'), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
