package engine_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/kubetest"
)

// gated is a template of a Pod that is ready when the test says so.
const gated = `apiVersion: v1
kind: Pod
metadata: {name: gated}
spec:
  terminationGracePeriodSeconds: 0
  readinessGates: [{conditionType: example.test/open}]
  containers: [{name: pause, image: ` + pauseImage + `}]
`

// open makes the gated Pod ready.
func (c *charted) open(t *testing.T) {
	t.Helper()
	patch := `{"status":{"conditions":[{"type":"example.test/open","status":"True"}]}}`
	_, err := c.Client.CoreV1().Pods(c.namespace).Patch(t.Context(), "gated", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
}

// startUntil starts a job and waits until its log has a text.
func startUntil(t *testing.T, j *jobDir, text string) *exec.Cmd {
	t.Helper()
	cmd := j.start(t)
	waitFor(t, text, contains(filepath.Join(j.path, "stdout.log"), text))
	return cmd
}

func killNow(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

// An apply that is killed while it waits leaves its release pending. What
// follows completes it under the same approval.
func TestHelmKilledInTheWait(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		first   bool
		pending release.Status
		after   []release.Status
	}{
		{"of an install", true, release.StatusPendingInstall, []release.Status{release.StatusFailed, release.StatusDeployed}},
		{"of an upgrade", false, release.StatusPendingUpgrade, []release.Status{release.StatusSuperseded, release.StatusFailed, release.StatusDeployed}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := chart(t, map[string]string{"templates/one.yaml": oneMap})
			if !tc.first {
				c.roll(t)
			}
			c.values = map[string]string{"value": "two"}
			c.chart["templates/gated.yaml"] = gated
			plan, _ := c.plan(t)
			killNow(t, startUntil(t, c.applyJob(t, plan), "waiting for Pod/gated"))
			history := c.history(t)
			if got := history[len(history)-1]; got != tc.pending {
				t.Fatalf("the release is %s, want %s", got, tc.pending)
			}
			next := c.planAfter(t, plan)
			if diff := cmp.Diff(plan.read(t, "out/plan.canonical.json"), next.read(t, "out/plan.canonical.json")); diff != "" {
				t.Errorf("the plan after the kill is another one (-before +after):\n%s", diff)
			}
			wantContains(t, "plan text", next.read(t, "out/plan.summary.json"), "was left "+string(tc.pending))
			apply := c.applyJob(t, next)
			cmd := startUntil(t, apply, "waiting for Pod/gated")
			c.open(t)
			if r := apply.finish(t, cmd); r.Outcome != jobspec.OutcomeSucceeded {
				t.Fatalf("outcome %s: %s", r.Outcome, r.Error)
			}
			if diff := cmp.Diff(tc.after, c.history(t)); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
			c.wantNoChange(t)
		})
	}
}

// wantNoChange checks that a plan has nothing left to do.
func (c *charted) wantNoChange(t *testing.T) {
	t.Helper()
	if plan, r := c.plan(t); !r.NoChange {
		t.Errorf("there is something left to do:\n%s", strings.Join(c.summary(t, plan), "\n"))
	}
}

// A hook that never ends is killed with its apply. The next chart has a better
// one, and no longer what the killed apply had made.
func TestHelmKilledInAHook(t *testing.T) {
	t.Parallel()
	c := chart(t, map[string]string{"templates/one.yaml": oneMap})
	c.roll(t)
	c.chart["templates/hook.yaml"] = hookJob("migrate", "post-upgrade", false)
	c.chart["templates/two.yaml"] = configMap("two", "x")
	plan, _ := c.plan(t)
	summary := strings.Join(c.summary(t, plan), "\n")
	wantContains(t, "summary", summary, "run Job migrate ")
	wantContains(t, "summary", summary, "(post-upgrade hook)")
	killNow(t, startUntil(t, c.applyJob(t, plan), "waiting for hook Job/migrate"))
	if got := c.data(t, "two"); got != `{"key":"x"}` {
		t.Fatalf("the second is %s", got)
	}

	c.chart["templates/hook.yaml"] = hookJob("migrate", "post-upgrade", true)
	delete(c.chart, "templates/two.yaml")
	next := c.planAfter(t, plan)
	wantContains(t, "summary", strings.Join(c.summary(t, next), "\n"), "delete ConfigMap NS/two (left by an attempt that did not succeed)")
	apply := c.applyJob(t, next)
	apply.must(t)
	wantContains(t, "log", apply.log(t), "hook Job/migrate is done")
	if got := c.data(t, "two"); got != "absent" {
		t.Errorf("the second is %s", got)
	}
	if diff := cmp.Diff([]release.Status{release.StatusSuperseded, release.StatusFailed, release.StatusDeployed}, c.history(t)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	c.wantNoChange(t)
}

// What a hook said before it failed stands in the log of the apply.
func TestHelmHookThatFails(t *testing.T) {
	t.Parallel()
	// Go's runtime ends the program with a message when this is no number.
	c := chart(t, map[string]string{
		"templates/hook.yaml": hookJob("migrate", "post-install", false) + "          env: [{name: GOMEMLIMIT, value: none}]\n",
	})
	plan, _ := c.plan(t)
	apply := c.applyJob(t, plan)
	r := apply.run(t)
	if r.Outcome != jobspec.OutcomeFailed {
		t.Errorf("outcome %s: %s", r.Outcome, r.Error)
	}
	wantContains(t, "error", r.Error, "hook Job/migrate failed: BackoffLimitExceeded")
	wantContains(t, "log", apply.log(t), ", container hook: fatal error: malformed GOMEMLIMIT")
}

// A rollout that does not get ready fails with the reason, and so does one that
// is asked to stop. Helm says so too, and a better chart goes on from there.
func TestHelmFailures(t *testing.T) {
	t.Parallel()
	c := chart(t, map[string]string{"templates/one.yaml": oneMap, "templates/gated.yaml": gated})
	plan, _ := c.plan(t)
	apply := c.applyJob(t, plan)
	apply.spec.TimeoutSeconds = 5
	r := apply.run(t)
	if r.Outcome != jobspec.OutcomeFailed {
		t.Errorf("outcome %s: %s", r.Outcome, r.Error)
	}
	wantContains(t, "error", r.Error, "Pod/gated")
	if diff := cmp.Diff([]release.Status{release.StatusFailed}, c.history(t)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}

	plan, _ = c.plan(t)
	wantContains(t, "plan text", plan.read(t, "out/plan.summary.json"), "revision 1 failed and nothing was ever deployed")
	apply = c.applyJob(t, plan)
	cmd := startUntil(t, apply, "waiting for Pod/gated")
	stop(t, cmd)
	if r = apply.finish(t, cmd); r.Outcome != jobspec.OutcomeCancelled {
		t.Errorf("outcome %s: %s", r.Outcome, r.Error)
	}
	if diff := cmp.Diff([]release.Status{release.StatusFailed, release.StatusFailed}, c.history(t)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}

	delete(c.chart, "templates/gated.yaml")
	c.roll(t)
	if c.get(t, "Pod/gated") != nil {
		t.Error("what the failed attempts made is still there")
	}
	if diff := cmp.Diff([]release.Status{release.StatusFailed, release.StatusFailed, release.StatusDeployed}, c.history(t)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

// Somebody writes between our look and our write: it is compared again. What was
// not planned is not overwritten, and an apply that wrote nothing leaves no
// revision.
func TestHelmConflict(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, edit, data string
		outcome          jobspec.Outcome
	}{
		{"to a field of somebody else", `{"data":{"their":"own"}}`, `{"key":"two","their":"own"}`, jobspec.OutcomeSucceeded},
		{"to a field of the release", `{"data":{"key":"by hand"}}`, `{"key":"by hand"}`, jobspec.OutcomeStale},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := chart(t, map[string]string{"templates/one.yaml": oneMap})
			c.roll(t)
			c.values = map[string]string{"value": "two"}
			plan, _ := c.plan(t)
			edited := false
			between := c.behind(t, func(w kubetest.Write) {
				if !edited && w.Path == "/api/v1/namespaces/"+c.namespace+"/configmaps/one" {
					edited = true
					c.edit(t, "ConfigMap/one", tc.edit)
				}
			})
			r := between.applyJob(t, plan).run(t)
			if r.Outcome != tc.outcome {
				t.Errorf("outcome %s, want %s: %s", r.Outcome, tc.outcome, r.Error)
			}
			if got := c.data(t, "one"); got != tc.data {
				t.Errorf("it is %s, want %s", got, tc.data)
			}
			want := []release.Status{release.StatusDeployed}
			if tc.outcome == jobspec.OutcomeSucceeded {
				want = []release.Status{release.StatusSuperseded, release.StatusDeployed}
			}
			if diff := cmp.Diff(want, c.history(t)); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
		})
	}
}
