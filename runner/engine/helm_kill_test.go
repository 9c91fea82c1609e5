package engine_test

import (
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/kubetest"
)

// hooked are templates of hooks that are done when they are there.
var hooked = strings.Join([]string{
	configMap("before", "x", `helm.sh/hook: "pre-install,pre-upgrade,pre-delete"`),
	configMap("behind", "x", `helm.sh/hook: "post-install,post-upgrade"`),
}, "")

// changing is a chart that has objects which change, come and go with values.
func changing(t *testing.T) *charted {
	t.Helper()
	return chart(t, map[string]string{
		"templates/one.yaml": oneMap, "templates/hooks.yaml": hooked,
		"templates/some.yaml": "{{ if .Values.leaves }}\n" + configMap("leaves", "x") + "{{ end }}{{ if .Values.comes }}\n" + configMap("comes", "x") + "{{ end }}",
	})
}

// The engine is killed after each write of an apply, also of those of Helm's own
// records. The plan that follows must be the same effect again, or find that all
// is done; its apply must complete it, and nothing is left pending.
func TestHelmKilledAtEachWrite(t *testing.T) {
	t.Parallel()
	before, after := map[string]string{"leaves": "true"}, map[string]string{"value": "two", "comes": "true"}
	for _, tc := range []struct {
		name    string
		prepare func(*testing.T, *charted)
		plan    func(*testing.T, *charted) *jobDir
	}{
		{
			name:    "install",
			prepare: func(*testing.T, *charted) {},
			plan:    func(t *testing.T, c *charted) *jobDir { c.values = after; plan, _ := c.plan(t); return plan },
		},
		{
			name:    "upgrade",
			prepare: func(t *testing.T, c *charted) { c.values = before; c.roll(t) },
			plan:    func(t *testing.T, c *charted) *jobDir { c.values = after; plan, _ := c.plan(t); return plan },
		},
		{
			name:    "teardown",
			prepare: func(t *testing.T, c *charted) { c.values = before; c.roll(t); c.values = after; c.roll(t) },
			plan:    func(t *testing.T, c *charted) *jobDir { plan, _ := c.planDestroy(t); return plan },
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for n := range writesOf(t, tc.prepare, tc.plan) {
				t.Run(fmt.Sprintf("write %d", n+1), func(t *testing.T) {
					t.Parallel()
					c := changing(t)
					tc.prepare(t, c)
					plan := tc.plan(t, c)
					c.kill(t, plan, n+1)
					c.goOn(t, plan)
					if plan.spec.Destroy {
						if c.get(t, "Namespace/"+c.namespace) != nil {
							t.Error("the namespace is still there")
						}
						return
					}
					if got := c.data(t, "one") + c.data(t, "leaves") + c.data(t, "comes"); got != `{"key":"two"}absent{"key":"x"}` {
						t.Errorf("one, leaves and comes are %s", got)
					}
					c.wantDeployed(t)
				})
			}
		})
	}
}

// writesOf counts the writes of an apply that nobody kills.
func writesOf(t *testing.T, prepare func(*testing.T, *charted), plan func(*testing.T, *charted) *jobDir) int {
	t.Helper()
	c := changing(t)
	prepare(t, c)
	p := plan(t, c)
	writes := 0
	c.behind(t, func(kubetest.Write) { writes++ }).applyJob(t, p).must(t)
	if writes < 8 { // claim, record, hook, objects, record
		t.Fatalf("an apply makes %d writes", writes)
	}
	return writes
}

// behind is the component with a proxy before the API server.
func (c *charted) behind(t *testing.T, hook func(kubetest.Write)) *charted {
	t.Helper()
	inner := *c.deployed
	inner.kubeconfig = c.Proxy(t, hook)
	proxied := *c
	proxied.deployed = &inner
	return &proxied
}

// kill kills the apply of a plan once its nth write is done.
func (c *charted) kill(t *testing.T, plan *jobDir, n int) {
	t.Helper()
	var engine *exec.Cmd
	var once sync.Once
	started := make(chan struct{})
	behind := c.behind(t, func(w kubetest.Write) {
		if w.N < n {
			return
		}
		<-started
		if w.N == n {
			w.Forward()
		}
		once.Do(func() { _ = engine.Process.Kill() })
		w.Cut()
	})
	apply := behind.applyJob(t, plan)
	c.fence = behind.fence
	engine = apply.start(t)
	close(started)
	if err := engine.Wait(); err == nil || engine.ProcessState.Exited() {
		t.Fatalf("the apply ended by itself before write %d:\n%s", n, apply.log(t))
	}
}

// goOn completes a killed apply by a plan that follows it.
func (c *charted) goOn(t *testing.T, plan *jobDir) {
	t.Helper()
	next := c.planAfter(t, plan)
	var r jobspec.Result
	next.readJSON(t, "out/result.json", &r)
	if r.NoChange {
		return
	}
	if diff := cmp.Diff(plan.read(t, "out/plan.canonical.json"), next.read(t, "out/plan.canonical.json")); diff != "" {
		t.Errorf("the plan after the kill is another one (-before +after):\n%s", diff)
	}
	c.applyJob(t, next).must(t)
}

// wantDeployed checks that the release ends as after an apply that nobody
// killed: one revision is deployed, the last, and none is pending.
func (c *charted) wantDeployed(t *testing.T) {
	t.Helper()
	history := c.history(t)
	for i, status := range history {
		if isLast := i == len(history)-1; isLast != (status == release.StatusDeployed) || status.IsPending() {
			t.Errorf("history is %v", history)
			break
		}
	}
	c.wantNoChange(t)
}
