package up

import (
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
