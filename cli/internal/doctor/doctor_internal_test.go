package doctor

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/contexts"
	"github.com/berth-dev/berth/cli/internal/up"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func TestClock(t *testing.T) {
	t.Parallel()
	for off, ok := range map[time.Duration]bool{0: true, 30 * time.Second: true, -30 * time.Second: true, 31 * time.Second: false, -time.Hour: false} {
		got := clock(now.Add(off), now)
		if got.OK != ok || got.OK == (got.Remedy != "") {
			t.Errorf("off by %s: got %+v, want ok: %t", off, got, ok)
		}
	}
}

func TestRunner(t *testing.T) {
	t.Parallel()
	seen, problem := now.Add(-time.Hour), "two machines have its key"
	start := "start it on its machine (here: berth up), then berth why "
	for _, tc := range []struct {
		name string
		r    ctlapi.Runner
		want Finding
	}{
		{"online", ctlapi.Runner{Name: "acme", Online: true, Switch: "on", Trust: "full"}, Finding{What: "runner acme", OK: true, Detail: "online, switch on, trust full"}},
		{"disputed, although online", ctlapi.Runner{Name: "acme", Online: true, DisputedSince: &seen, Problem: &problem},
			Finding{What: "runner acme", Detail: problem, Remedy: "find out who has a copy of its data directory, then follow docs/guides/lost-machine.md"}},
		{"offline", ctlapi.Runner{Name: "r", State: ctlapi.RunnerStateActive, LastSeenAt: &seen, Install: &ctlapi.Ref{Name: "acme"}},
			Finding{What: "runner r", Detail: "active, last seen 60 min ago", Remedy: start + "acme"}},
		{"never there", ctlapi.Runner{Name: "r", State: ctlapi.RunnerStateActive}, Finding{What: "runner r", Detail: "active, never connected", Remedy: start + "r"}},
	} {
		if diff := cmp.Diff(tc.want, runner(tc.r, now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestParts(t *testing.T) {
	t.Parallel()
	got := parts(up.Status{Parts: []up.PartHealth{
		{PartStatus: up.PartStatus{Name: "postgres", PID: 7}, Ready: true},
		{PartStatus: up.PartStatus{Name: "builder", Log: "/data/log/builder"}, Why: "not started"},
	}})
	want := []Finding{{What: "postgres", OK: true, Detail: "pid 7, ready"}, {What: "builder", Detail: "not started", Remedy: "read /data/log/builder"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if Healthy(got) || !Healthy(got[:1]) || !Healthy(nil) {
		t.Error("healthy is that nothing is wrong")
	}
}

func TestPorts(t *testing.T) {
	t.Parallel()
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	port := taken.Addr().(*net.TCPAddr).Port
	if got := ports(t.Context(), fmt.Sprint(port)); got.OK || got.Detail != fmt.Sprintf("another program uses port %d", port) {
		t.Errorf("a port that is taken: %+v", got)
	}
	if got := ports(t.Context(), "x"); got.OK {
		t.Errorf("no number: %+v", got)
	}
}

func TestTerraform(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "terraform")
	if got := terraform(file); got.OK || got.Remedy == "" {
		t.Errorf("a chosen one that is not there: %+v", got)
	}
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := terraform(file); !got.OK || got.Detail != file {
		t.Errorf("a chosen one: %+v", got)
	}
}

func TestBadHasTheRemedyOfItsError(t *testing.T) {
	t.Parallel()
	got := Bad("context", &contexts.Problem{What: "broken", Advice: "repair it"})
	if diff := cmp.Diff(Finding{What: "context", Detail: "broken", Remedy: "repair it"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
