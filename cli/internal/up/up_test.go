package up_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/up"
)

var allParts = []string{"builder", "ctl-api", "log-ingest", "postgres", "runner-api"}

func names(pids map[string]int) []string { return slices.Sorted(maps.Keys(pids)) }

func running(pid int) bool { return up.Alive(pid) }

func TestUpStartsEverythingAndStopsIt(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	stop := h.up(nil)
	pids := h.pids()
	if diff := cmp.Diff(allParts, names(pids)); diff != "" {
		t.Errorf("parts that are ready (-want +got):\n%s", diff)
	}
	if err := stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	for name, pid := range pids {
		if running(pid) {
			t.Errorf("%s (pid %d) runs on after the stop", name, pid)
		}
	}
}

func TestWhatDiesIsStartedAgain(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.up(nil)
	before := h.pids()
	for name, pid := range before {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatalf("kill %s: %v", name, err)
		}
		h.eventually(name+" is back as another process", func() bool {
			now := h.pids()
			return now[name] != 0 && now[name] != pid
		})
	}
	if diff := cmp.Diff(allParts, names(h.pids())); diff != "" {
		t.Errorf("parts that are ready (-want +got):\n%s", diff)
	}
}

func TestSecondUpIsToldWhereTheFirstIs(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.up(nil)
	err := up.Run(t.Context(), h.config(func(string) { t.Error("the second became ready") }, nil))
	if !errors.Is(err, up.ErrRunning) || !strings.Contains(err.Error(), ":"+strconv.Itoa(h.port)) {
		t.Errorf("second up: got %v, want ErrRunning with the URL", err)
	}
	if diff := cmp.Diff(allParts, names(h.pids())); diff != "" {
		t.Errorf("the first one's parts (-want +got):\n%s", diff)
	}
}

func TestKilledSupervisorLeavesPartsThatTheNextTakesOver(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	killed := h.superviseElsewhere()
	before := h.pids()
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	for name, pid := range before {
		if !running(pid) {
			t.Errorf("%s (pid %d) died with the supervisor", name, pid)
		}
	}
	next := h.superviseElsewhere()
	if diff := cmp.Diff(before, h.pids()); diff != "" {
		t.Errorf("processes after the next up (-before +after):\n%s", diff)
	}

	t.Run("and restarts when they die", func(t *testing.T) {
		pid := before["builder"]
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		h.eventually("builder is back", func() bool { now := h.pids()["builder"]; return now != 0 && now != pid })
	})
	after := h.pids()

	t.Run("and stops", func(t *testing.T) {
		if err := next.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := next.Wait(); err != nil {
			t.Errorf("supervisor: %v", err)
		}
		for name, pid := range after {
			if running(pid) {
				t.Errorf("%s (pid %d) runs on", name, pid)
			}
		}
	})
}

func TestPartsOfAnotherBuildAreEndedNotTakenOver(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	killed := h.superviseElsewhere()
	before := h.pids()
	_ = killed.Process.Kill()
	_ = killed.Wait()
	h.up(map[string]string{"OTEL_SDK_DISABLED": "true"}) // another environment is another start
	for name, pid := range h.pids() {
		if changed := pid != before[name]; changed != (name != "postgres") {
			t.Errorf("%s: pid %d before, %d now", name, before[name], pid)
		}
	}
	for name, pid := range before {
		if name != "postgres" && running(pid) {
			t.Errorf("the older %s (pid %d) runs on", name, pid)
		}
	}
}

func TestDownEndsWhatAKilledSupervisorLeft(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	killed := h.superviseElsewhere()
	before := h.pids()
	_ = killed.Process.Kill()
	_ = killed.Wait()
	ended := map[string]int{}
	if err := up.Down(h.layout, func(e up.Ended) { ended[e.Name] = e.PID }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, ended); diff != "" {
		t.Errorf("ended (-ran +ended):\n%s", diff)
	}
	deleted, err := up.Purge(h.layout)
	if err != nil || !slices.Contains(deleted, h.layout.Dir) {
		t.Errorf("purge: deleted %v, %v", deleted, err)
	}
	if _, err := os.Stat(h.layout.Dir); !os.IsNotExist(err) {
		t.Errorf("data folder after the purge: %v", err)
	}
}

func TestPurgeLeavesAloneWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	if err := os.Mkdir(h.layout.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	precious := filepath.Join(h.layout.Dir, "precious.txt")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := up.Down(h.layout, func(up.Ended) {}); err == nil {
		t.Error("down took a foreign folder for a data folder")
	}
	if deleted, err := up.Purge(h.layout); err != nil || len(deleted) > 0 {
		t.Errorf("purge: deleted %v, %v", deleted, err)
	}
	if err := up.Run(t.Context(), h.config(func(string) {}, nil)); err == nil || !strings.Contains(err.Error(), "not a data folder of Berth") {
		t.Errorf("up in a foreign folder: %v", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

func TestStartFailsWithOneLineAndStopsWhatItStarted(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name         string
		env          map[string]string
		prepare      func(*testing.T, *house)
		want, remedy string
	}{
		{
			name: "port taken",
			prepare: func(t *testing.T, h *house) {
				l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(h.port+2)))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = l.Close() })
			},
			want: "for log-ingest, is taken by another program", remedy: "BERTH_PORT",
		},
		{
			name: "no Postgres", env: map[string]string{"BERTH_PG_BIN": "/nowhere"},
			want: "BERTH_PG_BIN=/nowhere has no Postgres in it", remedy: "postgres and initdb",
		},
		{
			name: "migration fails", env: map[string]string{"BERTH_TEST_FAIL_MIGRATE": "schema is from the future"},
			want: "migrate: schema is from the future; its log: ", remedy: "fix that",
		},
		{
			name: "a service that ends says why, without its secrets", env: map[string]string{"BERTH_TEST_FAIL_SERVICE": "no room for"},
			want: "builder does not start (exit status 1): no room for postgres://berth_builder:(redacted)@/berth; its log: /", remedy: "fix that",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			if tc.prepare != nil {
				tc.prepare(t, h)
			}
			err := up.Run(t.Context(), h.config(func(string) { t.Error("became ready") }, tc.env))
			var problem *up.Problem
			if !errors.As(err, &problem) {
				t.Fatalf("got %v, want a problem with a remedy", err)
			}
			if !strings.Contains(problem.Error(), tc.want) || strings.Contains(problem.Error(), "\n") {
				t.Errorf("says %q, want one line with %q", problem.Error(), tc.want)
			}
			if !strings.Contains(problem.Remedy(), tc.remedy) {
				t.Errorf("remedy %q, want it to name %q", problem.Remedy(), tc.remedy)
			}
			if left := h.pids(); len(left) > 0 {
				t.Errorf("left running: %v", left)
			}
		})
	}
}

func TestMissingExecutablesAreNamed(t *testing.T) { //nolint:paralleltest // it changes the directory
	h := newHouse(t)
	if err := os.Remove(filepath.Join(h.libexec, "berth-builder")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir()) // away from the source tree, where they would be built
	err := up.Run(t.Context(), h.config(func(string) { t.Error("became ready") }, nil))
	var problem *up.Problem
	if !errors.As(err, &problem) || !strings.Contains(problem.Error(), "has no berth-builder") || !strings.Contains(problem.Remedy(), "BERTH_LIBEXEC") {
		t.Errorf("got %v", err)
	}
}

func TestRunnerOrders(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	stop := h.up(nil)
	order := up.Order{
		Kind: "install", OrgID: "org_1", InstallID: "ins_1", Name: "acme",
		EnrolmentSecret: "ben_secret", PhoneHomeSecret: "bph_right", StackVersion: 1,
		DispatchKeys: []up.DispatchKey{{KeyID: "dispatch-1", PublicKey: "key"}},
		RunnerAPIURL: up.URL(h.port + 1), LogURL: up.URL(h.port + 2),
	}
	if status := h.call("PUT", "/runners/rnr_1", order); status != 202 {
		t.Fatalf("PUT: %d", status)
	}
	h.eventually("the runner runs", func() bool { return h.pids()["runner acme"] != 0 })
	pid := h.pids()["runner acme"]
	if status := h.call("PUT", "/runners/rnr_1", order); status != 202 || h.pids()["runner acme"] != pid {
		t.Errorf("same order again: %d, pid %d instead of %d", status, h.pids()["runner acme"], pid)
	}
	for _, bad := range []string{"/runners/rnr_", "/runners/..%2Fetc"} {
		if status := h.call("PUT", bad, order); status != 422 {
			t.Errorf("PUT %s: %d", bad, status)
		}
	}

	dir := filepath.Join(h.layout.Runners(), "rnr_1")
	secret := filepath.Join(dir, "secrets", "enrolment")
	if info, err := os.Stat(secret); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("enrolment secret: %v, %v", info, err)
	}
	state, err := os.ReadFile(h.layout.State())
	if err != nil || strings.Contains(string(state), "ben_secret") || strings.Contains(string(state), "bph_right") {
		t.Errorf("state.json holds a secret, or %v", err)
	}
	var home struct{ Outputs map[string]string }
	h.eventually("the stack phones home", func() bool {
		data, err := os.ReadFile(filepath.Join(h.layout.Dir, "phoned-home.json"))
		return err == nil && json.Unmarshal(data, &home) == nil
	})
	if got, want := home.Outputs["install_dir"], filepath.Join(dir, "install"); got != want {
		t.Errorf("install_dir %q, want %q", got, want)
	}
	h.eventually("the used secret is deleted", func() bool {
		_, err := os.Stat(filepath.Join(dir, "secrets", "phone-home"))
		return os.IsNotExist(err)
	})

	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if running(pid) {
		t.Errorf("runner (pid %d) runs on after the stop", pid)
	}
	h.up(nil)
	h.eventually("the runner is restored", func() bool { return h.pids()["runner acme"] != 0 })
	pid = h.pids()["runner acme"]
	for range 2 {
		if status := h.call("DELETE", "/runners/rnr_1", nil); status != 204 {
			t.Errorf("DELETE: %d", status)
		}
	}
	if running(pid) || h.call("GET", "/runners/rnr_1", nil) != 404 {
		t.Errorf("runner is still there after DELETE")
	}
}

func TestStopWhileStarting(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ctx, cancel := context.WithCancel(t.Context())
	cfg := h.config(func(string) {}, nil)
	cfg.Say = func(line string) {
		if strings.Contains(line, "postgres") {
			cancel()
		}
	}
	if err := up.Run(ctx, cfg); err != nil {
		t.Errorf("stopped while starting: %v", err)
	}
	if left := h.pids(); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}
