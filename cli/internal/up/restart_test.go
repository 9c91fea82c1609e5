package up_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/up"
	"github.com/berth-dev/berth/pkg/durable"
)

// replace gives a part another executable, as a build does.
func (h *house) replace(name string, program []byte) {
	h.t.Helper()
	if err := durable.WriteFile(filepath.Join(h.libexec, name), program, 0o755); err != nil {
		h.t.Fatal(err)
	}
}

func TestRestartReplacesOnlyWhatWasBuilt(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	if _, err := up.Restart(t.Context(), h.layout); err == nil || !strings.Contains(err.Error(), "not running") {
		t.Errorf("nothing runs: got %v", err)
	}
	h.up(nil)
	self, err := os.ReadFile(filepath.Join(h.libexec, "berth-builder"))
	if err != nil {
		t.Fatal(err)
	}
	before := h.pids()
	restart := func(want []string) {
		t.Helper()
		done, err := up.Restart(t.Context(), h.layout)
		if err != nil {
			t.Fatalf("restart: %v\n%s", err, h.said())
		}
		if diff := cmp.Diff(want, done.Parts); diff != "" {
			t.Errorf("restarted (-want +got):\n%s", diff)
		}
	}
	restart(nil)

	h.replace("berth-log-ingest", self)
	h.replace("berth-runner", append(self, '\n')) // builder starts runners; they may be copies
	restart([]string{"log-ingest", "builder"})
	after := h.pids()
	for name, pid := range before {
		changed := name == "log-ingest" || name == "builder"
		if after[name] == 0 || (after[name] != pid) != changed {
			t.Errorf("%s: pid %d before, %d now", name, pid, after[name])
		}
		if changed && running(pid) {
			t.Errorf("the older %s (pid %d) runs on", name, pid)
		}
	}

	// One that does not start is an error with its last words, and is replaced by the
	// next build as soon as that is there.
	h.replace("berth-builder", []byte("#!/bin/sh\necho 'berth-builder: no such setting' >&2\nexit 1\n"))
	_, err = up.Restart(t.Context(), h.layout)
	if err == nil || !strings.Contains(err.Error(), "no such setting") {
		t.Errorf("a builder that ends at once: got %v", err)
	}
	if now := h.pids(); now["ctl-api"] != after["ctl-api"] || now["builder"] != 0 {
		t.Errorf("after a builder that ends at once: %v", now)
	}
	h.replace("berth-builder", self)
	restart([]string{"builder"})
	if diff := cmp.Diff(allParts, names(h.pids())); diff != "" {
		t.Errorf("parts that are ready (-want +got):\n%s", diff)
	}

	// The schema comes first: ctl-api runs on when it cannot be brought up to date.
	h.replace("berth-ctl-api", []byte("#!/bin/sh\necho 'berth-ctl-api: migration 7 fails' >&2\nexit 1\n"))
	_, err = up.Restart(t.Context(), h.layout)
	var known *up.Problem
	if !errors.As(err, &known) || !strings.Contains(known.What, "migration 7 fails") {
		t.Errorf("a migration that fails: got %v", err)
	}
	if now := h.pids(); now["ctl-api"] != after["ctl-api"] {
		t.Errorf("ctl-api: pid %d before a migration that failed, %d now", after["ctl-api"], now["ctl-api"])
	}
}
