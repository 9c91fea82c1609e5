package engine_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/buildkit"
	"github.com/berth-dev/berth/runner/agent/buildkit/buildkittest"
	"github.com/berth-dev/berth/runner/agent/buildkit/step"
)

// What a step may not do, as Dockerfiles.
const (
	eats  = shell + "RUN /bin/busybox awk 'BEGIN { s = \"x\"; while (1) s = s s }'\n"
	forks = shell + "RUN bomb() { bomb | bomb & }; bomb; /bin/busybox sleep 2; for i in 1 2 3 4 5 6 7 8 9; do /bin/busybox true; done; exit 9\n"
)

// A RUN step that takes all memory, or forks without end, costs its own build, which
// says why; another build with the same BuildKit goes on, and so does BuildKit.
func TestDockerBuildLimits(t *testing.T) {
	t.Parallel()
	for _, groups := range []bool{true, false} {
		name := map[bool]string{true: "control groups", false: "each process"}[groups]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			buildkittest.Programs(t)
			k := kitchen{secrets: t.TempDir()}
			r := buildkittest.New(t, buildkit.Settings{Secrets: k.secrets, StepMemory: 256 << 20, StepPIDs: 200})
			k.service = r.Service(t)
			first := k.job(t, jobspec.Docker{}, map[string]string{"Dockerfile": shell + "RUN echo it begins; /bin/busybox sleep 4; echo it ends > /end\n"})
			limits := filepath.Join(r.Config.Dir, "state/bin", step.File)
			l := readLimits(t, limits)
			if groups && len(l.Groups) == 0 {
				t.Skip("namespaces: this machine gives root no control groups for memory and processes")
			}
			if !groups { // as on a machine that has none
				l.Groups = nil
				raw, err := json.Marshal(l)
				if err != nil {
					t.Fatal(err)
				}
				overwrite(t, limits, string(raw))
				if err := os.Chmod(limits, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			cmd := first.start(t)
			wait(t, "the other build begins", func() bool { return strings.Contains(first.log(t), "| it begins") })
			memory, processes := "reached its limit of 256 MiB of memory", "reached its limit of 200 processes"
			if !groups {
				memory, processes = "memory 256 MiB for each process", "200 processes over all steps"
			}
			for dockerfile, want := range map[string]string{eats: memory, forks: processes} {
				r := k.job(t, jobspec.Docker{}, map[string]string{"Dockerfile": dockerfile}).run(t)
				if r.Outcome != jobspec.OutcomeFailed {
					t.Errorf("outcome %s", r.Outcome)
				}
				wantContains(t, "error", r.Error, want)
				t.Logf("%s; %s", r.Error, r.Remedy)
			}
			if r := first.finish(t, cmd); r.Outcome != jobspec.OutcomeSucceeded {
				t.Errorf("the other build: %s: %s", r.Outcome, r.Error)
			}
			for _, g := range l.Groups {
				left, _ := filepath.Glob(filepath.Join(g.Dir, "step-*"))
				if len(left) > 0 {
					t.Errorf("groups of steps are left: %v", left)
				}
			}
		})
	}
}

func readLimits(t *testing.T, file string) (l step.Limits) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, &l)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}
