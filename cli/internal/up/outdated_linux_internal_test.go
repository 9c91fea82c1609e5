package up

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/berth-dev/berth/pkg/durable"
)

func TestOutdated(t *testing.T) {
	t.Parallel()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "part")
	if err := durable.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	status := Status{Parts: []PartHealth{{PartStatus: PartStatus{Name: "part", PID: cmd.Process.Pid}}, {PartStatus: PartStatus{Name: "not running"}}}}
	if old := status.Outdated(); old != nil {
		t.Errorf("just started: %v", old)
	}
	if err := durable.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	if old := status.Outdated(); len(old) != 1 || old[0] != "part" {
		t.Errorf("after a build: %v", old)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if old := status.Outdated(); old != nil {
		t.Errorf("there is nothing newer: %v", old)
	}
}

// What was started through a link is older once the link leads elsewhere, and what
// runs from a copy once the file that was copied is another one.
func TestOutdatedLinksAndCopies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"one", "two", "copy"} {
		if err := os.WriteFile(in(name), program, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("one", in("part")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), in("part"), "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	part := PartHealth{PartStatus: PartStatus{Name: "part", PID: cmd.Process.Pid, Path: in("part"), Copies: map[string]string{in("copy"): in("one")}}}
	old := func() bool { return len(Status{Parts: []PartHealth{part}}.Outdated()) > 0 }
	if old() {
		t.Error("just started: outdated")
	}
	if err := durable.WriteFile(in("one"), append(program, '\n'), 0o755); err != nil {
		t.Fatal(err)
	}
	part.Path = in("one.gone")
	if !old() {
		t.Error("what was copied is newer: not outdated")
	}
	part.Path, part.Copies = in("part"), nil
	if err := errors.Join(os.Remove(in("part")), os.Symlink("two", in("part"))); err != nil {
		t.Fatal(err)
	}
	if !old() {
		t.Error("the link leads elsewhere: not outdated")
	}
}
