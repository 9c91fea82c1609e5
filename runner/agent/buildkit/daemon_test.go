package buildkit_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/buildkit"
	"github.com/berth-dev/berth/runner/agent/buildkit/buildkittest"
	"github.com/berth-dev/berth/runner/agent/process"
)

func TestMain(m *testing.M) {
	buildkittest.IfKeeper()
	flag.Parse()
	os.Exit(m.Run())
}

// give asks for a daemon, and returns the variables of the engine.
func give(t *testing.T, s *buildkit.Service, docker jobspec.Docker) map[string]string {
	t.Helper()
	env, err := s.Give(t.Context(), "org_1", t.TempDir(), &docker)
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		vars[name] = value
	}
	return vars
}

// workers asks the daemon what it builds with.
func workers(t *testing.T, vars map[string]string) string {
	t.Helper()
	socket := strings.TrimPrefix(vars["BERTH_BUILDKIT_ADDR"], "unix://")
	cmd := exec.CommandContext(t.Context(), vars["BERTH_BUILDCTL"], "--addr", "unix:"+filepath.Base(socket), "debug", "workers")
	cmd.Dir = filepath.Dir(socket)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func keeper(t *testing.T, r *buildkittest.Runner) (id process.ID) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(r.Config.Dir, "keeper.json"))
	if err == nil {
		err = json.Unmarshal(raw, &id)
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// The daemon of an agent that was killed is found by the next one, one that was
// killed itself is replaced, and an end of the agent is its end.
func TestDaemonOutlivesAgentsAndNotTheRunner(t *testing.T) {
	t.Parallel()
	r := buildkittest.New(t, buildkit.Settings{})
	first := r.Service(t)
	vars := give(t, first, jobspec.Docker{})
	if got := workers(t, vars); !strings.Contains(got, "linux/amd64") && !strings.Contains(got, "linux/arm64") {
		t.Errorf("workers: %s", got)
	}
	began := keeper(t, r)

	next := r.Service(t) // the first one was killed: it ended nothing
	give(t, next, jobspec.Docker{})
	if got := keeper(t, r); got != began {
		t.Errorf("the next agent started another daemon: %v, was %v", got, began)
	}

	buildkittest.Kill(t, began.PID)
	for process.Alive(began) { // it is, until the last of its processes is gone
		time.Sleep(time.Millisecond)
	}
	workers(t, give(t, next, jobspec.Docker{}))
	again := keeper(t, r)
	if again == began {
		t.Error("a daemon that was killed is still on record")
	}
	if left := withUsers(t, r.Config.EngineUID); len(left) == 0 {
		t.Error("no process has the daemon's users: it runs as somebody else")
	}

	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
	if process.Alive(again) {
		t.Error("the daemon lives on")
	}
	deadline := time.Now().Add(5 * time.Second)
	for len(withUsers(t, r.Config.EngineUID)) > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("left over: %v", withUsers(t, r.Config.EngineUID))
		}
		time.Sleep(10 * time.Millisecond) // the kernel ends them one by one
	}
}

// withUsers are the processes of the users that a daemon has.
func withUsers(t *testing.T, engineUID int) (found []string) {
	t.Helper()
	first := buildkit.FirstUID(engineUID)
	files, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range files {
		info, err := os.Stat(dir)
		if err != nil {
			continue
		}
		if uid := owner(info); uid >= first && uid < first+65536 {
			line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// Two runners share neither socket nor cache nor users.
func TestDaemonsOfTwoRunnersAreApart(t *testing.T) {
	t.Parallel()
	one, two := buildkittest.New(t, buildkit.Settings{}), buildkittest.New(t, buildkit.Settings{})
	two.Config.EngineUID = one.Config.EngineUID + 1
	a, b := give(t, one.Service(t), jobspec.Docker{}), give(t, two.Service(t), jobspec.Docker{})
	if a["BERTH_BUILDKIT_ADDR"] == b["BERTH_BUILDKIT_ADDR"] {
		t.Fatalf("one socket for both: %s", a["BERTH_BUILDKIT_ADDR"])
	}
	workers(t, a)
	workers(t, b)
	// The other's users cannot reach the socket: it is below a folder of root.
	path := strings.TrimPrefix(a["BERTH_BUILDKIT_ADDR"], "unix://")
	if err := process.Reachable(path, buildkit.FirstUID(two.Config.EngineUID), buildkit.FirstUID(two.Config.EngineUID)); err == nil {
		t.Errorf("%s can be reached by the users of the other runner", path)
	}
}
