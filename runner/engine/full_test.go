package engine_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// What was done is known to the engine only: on a full disk it waits until it
// can leave its result.
func TestResultWaitsForRoom(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can make a disk that is small enough to be filled")
	}
	j := actionJob(t, jobspec.OperationRun, jobspec.ActionStep{Name: "one", Command: "true"})
	out := filepath.Join(j.path, "out")
	if err := syscall.Mount("tmpfs", out, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(out, syscall.MNT_DETACH) })
	filler := filepath.Join(out, "filler")
	if err := os.WriteFile(filler, bytes.Repeat([]byte("x"), 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	cmd := j.start(t)
	deadline := time.Now().Add(30 * time.Second)
	for !strings.Contains(j.log(t), "disk full") {
		if time.Now().After(deadline) {
			t.Fatalf("the engine does not say that it waits:\n%s", j.log(t))
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if r := j.finish(t, cmd); r.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("result = %+v", r)
	}
}
