package e2e_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestKubernetesKill kills the engine and the agent while a chart's pods are
// rolled out. Each time the rollout comes to its end by itself, within 15 s of
// being back and what a rollout takes, and no release is left half done.
func TestKubernetesKill(t *testing.T) {
	t.Parallel()
	s := startOnCluster(t)
	k := s.slowShop()
	db := s.database()

	tests := []struct {
		part string
		pid  func() int
	}{
		// Checks have engines too.
		{part: "engine", pid: func() int { return s.oneProcess(k.onlyJob(db, `operation = 'apply' and state = 'leased'`)) }},
		{part: "agent", pid: func() int { return s.pid("runner " + k.name) }},
	}
	for i, tt := range tests {
		t.Run(tt.part, func(t *testing.T) {
			k := k.on(t)
			memory := fmt.Sprintf("%dMi", 70+i)
			k.limit(memory)
			w := k.deploy(true, "web")
			k.rollingOut(w.ID, memory)
			k.signal(tt.pid(), syscall.SIGKILL)
			if tt.part == "agent" {
				k.eventually(goOnTimeout, "the agent is back", func() error {
					if p, ok := k.part("runner " + k.name); !ok || !p.Ready {
						return fmt.Errorf("not ready: %+v", k.parts())
					}
					return nil
				})
			}
			back := time.Now()
			// A rollout that goes on takes at most as long as one from the start.
			const rollout = slowRollout + 20*time.Second
			got := k.finished(w.ID, goOnTimeout+rollout)
			if got.State != "succeeded" {
				t.Fatalf("workflow: %s", k.explain(got))
			}
			if tt.part == "engine" && !slices.ContainsFunc(k.changes("uncertain"), func(c ctlapi.Change) bool { return c.WorkflowID == w.ID }) {
				t.Errorf("the killed engine's change is not shown as uncertain: %s", k.explain(got))
			}
			t.Logf("done %s after the kill: %s", time.Since(back).Round(100*time.Millisecond), k.explain(got))
			k.settledRelease(memory)
		})
	}
}

// slowRollout is how long a rollout of a slow shop takes at least.
const slowRollout = 8 * time.Second

// slowShop is a shop of one pod that takes its time to be ready, so that
// something can be done while it is waited for.
func (s *system) slowShop() *shop {
	s.t.Helper()
	return s.shop(slowFolder(s.t))
}

func slowFolder(t *testing.T) string {
	t.Helper()
	app := shopFolder(t)
	edit(t, filepath.Join(app, "src", "chart", "templates", "deployment.yaml"),
		"            periodSeconds: 2\n", fmt.Sprintf("            periodSeconds: 2\n            initialDelaySeconds: %d\n", int(slowRollout.Seconds())))
	edit(t, filepath.Join(app, "inputs.toml"), `default      = "2"`, `default      = "1"`)
	return app
}

// rollingOut waits until a workflow has begun to roll a memory limit out.
func (k *shop) rollingOut(workflowID, memory string) {
	k.t.Helper()
	k.eventually(rolloutTimeout, "the rollout has begun", func() error {
		if got := k.field("deployment/web", memoryLimit); got != memory {
			return fmt.Errorf("the limit is %s: %s", got, k.explain(k.workflow(workflowID)))
		}
		return nil
	})
}

// settledRelease checks that Helm sees one deployed revision and none that
// waits, and that the pods are those of the change.
func (k *shop) settledRelease(memory string) {
	k.t.Helper()
	var history []struct {
		Revision int
		Status   string
	}
	k.helm(&history, "history", "web")
	deployed := 0
	for i, r := range history {
		if strings.HasPrefix(r.Status, "pending") || r.Status == "uninstalling" {
			k.t.Errorf("revision %d is left %s", r.Revision, r.Status)
		}
		if r.Status == "deployed" {
			deployed++
			if i != len(history)-1 {
				k.t.Errorf("a revision follows the deployed one: %+v", history)
			}
		}
	}
	if deployed != 1 {
		k.t.Errorf("%d revisions are deployed: %+v", deployed, history)
	}
	if got := k.field("deployment/web", memoryLimit); got != memory {
		k.t.Errorf("the live limit is %s, want %s", got, memory)
	}
	if _, err := k.answers("/healthz"); err != nil {
		k.t.Error(err)
	}
}
