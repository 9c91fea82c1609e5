package engine_test

import (
	"fmt"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/kubetest"
)

// The engine is killed at each write of an apply, just before the API server
// gets it and just after it has done it. The plan that follows must be the same
// effect again, byte by byte, and its apply must complete it.
func TestManifestKilledAtEachWrite(t *testing.T) {
	t.Parallel()
	before := configMap("settings", "one") + configMap("leaves", "x") + configMap("same", "s")
	after := configMap("settings", "two") + configMap("comes", "new") + configMap("same", "s")

	// How many writes there are is found out by an apply that nobody kills.
	var writes atomic.Int64
	d := deploy(t)
	d.roll(t, before)
	plan, _ := d.plan(t, after)
	whole := *d
	whole.kubeconfig = d.Proxy(t, func(kubetest.Write) { writes.Add(1) })
	whole.applyJob(t, plan).must(t)
	if writes.Load() < 6 { // claim, save, two targets, one delete, save
		t.Fatalf("an apply makes %d writes", writes.Load())
	}

	for n := range int(writes.Load()) {
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d, done %v", n+1, done), func(t *testing.T) {
				t.Parallel()
				d := deploy(t)
				d.roll(t, before)
				killedApply(t, d, after, n+1, done)
				if got := d.data(t, "settings") + d.data(t, "leaves") + d.data(t, "comes"); got != `{"key":"two"}absent{"key":"new"}` {
					t.Errorf("settings, leaves and comes are %s", got)
				}
				if _, result := d.plan(t, after); !result.NoChange {
					t.Error("there is something left to do")
				}
			})
		}
	}
}

// The first apply of a component, which also makes its namespace.
func TestManifestKilledInItsFirstApply(t *testing.T) {
	t.Parallel()
	manifest := configMap("settings", "one") + configMap("other", "x")
	for n := range 5 { // namespace, claim, save, two targets
		t.Run(fmt.Sprintf("write %d", n+1), func(t *testing.T) {
			t.Parallel()
			d := deploy(t)
			killedApply(t, d, manifest, n+1, true)
			if _, result := d.plan(t, manifest); !result.NoChange {
				t.Error("there is something left to do")
			}
		})
	}
}

// A teardown that is killed goes on as well.
func TestManifestKilledInItsTeardown(t *testing.T) {
	t.Parallel()
	for n := range 5 { // claim, two deletes, inventory, namespace
		t.Run(fmt.Sprintf("write %d", n+1), func(t *testing.T) {
			t.Parallel()
			d := deploy(t)
			d.roll(t, configMap("settings", "one")+configMap("other", "x"))
			plan, _ := d.planDestroy(t)
			killAndGoOn(t, d, plan, n+1, true)
			if d.get(t, "Namespace/"+d.namespace) != nil {
				t.Error("the namespace is still there")
			}
		})
	}
}

func killedApply(t *testing.T, d *deployed, manifest string, n int, done bool) {
	t.Helper()
	plan, _ := d.plan(t, manifest)
	killAndGoOn(t, d, plan, n, done)
}

// killAndGoOn kills the apply of a plan at its nth write, and completes it by a
// plan that follows it.
func killAndGoOn(t *testing.T, d *deployed, plan *jobDir, n int, done bool) {
	t.Helper()
	killAt(t, d.Connection, func(kubeconfig string) *jobDir {
		behind := *d
		behind.kubeconfig = kubeconfig
		apply := behind.applyJob(t, plan)
		d.fence = behind.fence
		return apply
	}, n, done)
	next := d.planAfter(t, plan)
	if diff := cmp.Diff(plan.read(t, "out/plan.canonical.json"), next.read(t, "out/plan.canonical.json")); diff != "" {
		t.Errorf("the plan after the kill is another one (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(plan.read(t, "out/plan.summary.json"), next.read(t, "out/plan.summary.json")); diff != "" {
		t.Errorf("its summary is another one (-before +after):\n%s", diff)
	}
	d.applyJob(t, next).must(t)
}

// killAt kills the apply that makes gives for a kubeconfig at its nth write; done says
// whether the API server does that one.
func killAt(t *testing.T, cluster *kubetest.Connection, makes func(kubeconfig string) *jobDir, n int, done bool) {
	t.Helper()
	var engine *exec.Cmd
	var once sync.Once
	started, killed := make(chan struct{}), make(chan struct{})
	apply := makes(cluster.Proxy(t, func(w kubetest.Write) {
		if w.N < n {
			return
		}
		<-started
		if done && w.N == n {
			w.Forward()
		}
		once.Do(func() {
			_ = engine.Process.Kill()
			close(killed)
		})
		w.Cut()
	}))
	engine = apply.start(t)
	close(started)
	if err := engine.Wait(); err == nil {
		t.Fatalf("the apply ended well before write %d:\n%s", n, apply.log(t))
	}
	select {
	case <-killed:
	case <-time.After(10 * time.Second): // the hook is long done when it has run
		t.Fatalf("the apply ended by itself before write %d:\n%s", n, apply.log(t))
	}
}

// An apply with an older fence than the cluster knows does nothing; one that is
// outrun in the middle stops.
func TestManifestFence(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.roll(t, configMap("settings", "one"))
	plan, _ := d.plan(t, configMap("settings", "two"))
	zombie := d.applyJob(t, plan)
	newer, _ := d.plan(t, configMap("settings", "three"))
	d.applyJob(t, newer).must(t)

	r := zombie.run(t)
	want := []jobspec.Difference{{Field: "fence", Want: "2", Got: "3"}}
	if diff := cmp.Diff(want, r.Differs); r.Outcome != jobspec.OutcomeRefused || diff != "" {
		t.Errorf("outcome %s, differences (-want +got):\n%s", r.Outcome, diff)
	}
	if got := d.data(t, "settings"); got != `{"key":"three"}` {
		t.Errorf("ConfigMap settings has %s", got)
	}

	// It hangs before its first target while a newer one takes over.
	plan, _ = d.plan(t, configMap("settings", "four"))
	slow := *d
	slow.kubeconfig = d.Proxy(t, func(w kubetest.Write) {
		if w.N == 1 { // the claim
			w.Forward()
			d.edit(t, "ConfigMap/berth-kubernetes-manifest-web", `{"metadata":{"annotations":{"berth.dev/fence":"9"}}}`)
		}
	})
	r = slow.applyJob(t, plan).run(t)
	if r.Outcome == jobspec.OutcomeSucceeded || len(r.Differs) == 0 || r.Differs[0].Field != "fence" {
		t.Errorf("outcome %s, differences %+v: %s", r.Outcome, r.Differs, r.Error)
	}
	if got := d.data(t, "settings"); got != `{"key":"three"}` {
		t.Errorf("ConfigMap settings has %s", got)
	}
}

// Somebody writes to an object between our look at it and our write.
func TestManifestConflict(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, edit string
		want       jobspec.Outcome
		data       string
	}{
		{
			name: "to a field that is not ours", edit: `{"data":{"their":"own"}}`,
			want: jobspec.OutcomeSucceeded, data: `{"key":"two","their":"own"}`,
		},
		{
			name: "to a field that is ours", edit: `{"data":{"key":"by hand"}}`,
			want: jobspec.OutcomeStale, data: `{"key":"by hand"}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := deploy(t)
			d.roll(t, configMap("settings", "one"))
			plan, _ := d.plan(t, configMap("settings", "two"))
			var once sync.Once
			between := *d
			between.kubeconfig = d.Proxy(t, func(w kubetest.Write) {
				if w.Path == "/api/v1/namespaces/"+d.namespace+"/configmaps/settings" {
					once.Do(func() { d.edit(t, "ConfigMap/settings", tc.edit) })
				}
			})
			r := between.applyJob(t, plan).run(t)
			if r.Outcome != tc.want {
				t.Errorf("outcome is %s, want %s: %s", r.Outcome, tc.want, r.Error)
			}
			if tc.want == jobspec.OutcomeStale {
				want := []jobspec.Difference{{Field: "ConfigMap/settings: data.key", Want: `"one"`, Got: `"by hand"`}}
				if diff := cmp.Diff(want, r.Differs); diff != "" {
					t.Errorf("differences (-want +got):\n%s", diff)
				}
			}
			if got := d.data(t, "settings"); got != tc.data {
				t.Errorf("ConfigMap settings has %s, want %s", got, tc.data)
			}
		})
	}
}
