package engine_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/kubetest"
)

// failsSoon is a hook that fails within a second, for the value that is "bad".
const failsSoon = `{{ if eq .Values.value "bad" }}apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {helm.sh/hook: post-upgrade, helm.sh/hook-delete-policy: "before-hook-creation,hook-failed"}
spec:
  backoffLimit: 0
  activeDeadlineSeconds: 1
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 0
      containers: [{name: hook, image: ` + pauseImage + `}]
{{ end }}`

// atomicChart is deployed with the value "one"; "bad" fails after everything was
// written.
func atomicChart(t *testing.T) *charted {
	t.Helper()
	c := chart(t, map[string]string{
		"templates/one.yaml":  oneMap,
		"templates/hook.yaml": failsSoon,
		"templates/same.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: same}\ndata: {key: same}\n",
		"templates/either.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ if eq .Values.value \"one\" }}leaves{{ else }}comes{{ end }}\n" +
			"data: {key: here}\n",
	})
	c.spec.Atomic = true
	plan, _ := c.plan(t)
	c.applyJob(t, plan).must(t)
	return c
}

func (c *charted) objects(t *testing.T) string {
	t.Helper()
	return c.data(t, "one") + c.data(t, "leaves") + c.data(t, "comes") + c.data(t, "same")
}

// An upgrade that fails at its last hook: everything that it changed is as it
// was, and the history tells of it.
func TestHelmPutsBack(t *testing.T) {
	t.Parallel()
	c := atomicChart(t)
	before := c.objects(t)
	c.values = map[string]string{"value": "bad"}
	plan, _ := c.plan(t)
	wantContains(t, "plan", plan.read(t, "out/plan.summary.json"), "if the upgrade fails, what it changed is put back to revision 1")
	wantContains(t, "canonical plan", plan.read(t, "out/plan.canonical.json"), `"atomic":true`)
	apply := c.applyJob(t, plan)
	r := apply.run(t)
	if r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Error, "what it changed was put back to revision 1") {
		t.Errorf("outcome %s: %s", r.Outcome, r.Error)
	}
	if diff := cmp.Diff(before, c.objects(t)); diff != "" {
		t.Errorf("the objects (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff([]release.Status{release.StatusSuperseded, release.StatusFailed, release.StatusDeployed}, c.history(t)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	c.values = nil
	c.wantNoChange(t)
	c.values = map[string]string{"value": "good"}
	plan, _ = c.plan(t)
	c.applyJob(t, plan).must(t)
	c.wantDeployed(t)
}

// What somebody changed by hand, in objects that the plan left alone, is not put
// back.
func TestHelmPutsBackOnlyWhatItChanged(t *testing.T) {
	t.Parallel()
	c := atomicChart(t)
	c.values = map[string]string{"value": "bad"}
	plan, _ := c.plan(t)
	behind := c.behind(t, func(w kubetest.Write) {
		if w.N == 3 { // after everything was compared
			c.edit(t, "ConfigMap/same", `{"data":{"key":"by hand"}}`)
		}
	})
	if r := behind.applyJob(t, plan).run(t); r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Error, "was put back") {
		t.Errorf("outcome %s: %s", r.Outcome, r.Error)
	}
	if got := c.data(t, "same"); got != `{"key":"by hand"}` {
		t.Errorf("the object that was edited by hand is %s", got)
	}
}

// A first install that fails has nothing to go back to.
func TestHelmLeavesAFailedInstall(t *testing.T) {
	t.Parallel()
	c := chart(t, map[string]string{"templates/one.yaml": oneMap, "templates/hook.yaml": strings.Replace(failsSoon, "post-upgrade", "post-install", 1)})
	c.spec.Atomic = true
	c.values = map[string]string{"value": "bad"}
	plan, _ := c.plan(t)
	if r := c.applyJob(t, plan).run(t); r.Outcome != jobspec.OutcomeFailed || strings.Contains(r.Error, "put back") {
		t.Errorf("outcome %s: %s", r.Outcome, r.Error)
	}
	if got := c.data(t, "one"); got != `{"key":"bad"}` {
		t.Errorf("what it made is %s", got)
	}
}

// After a kill in the middle of a put-back, the next plan starts from what it finds.
func TestHelmKilledWhileItPutsBack(t *testing.T) {
	t.Parallel()
	c := atomicChart(t)
	c.values = map[string]string{"value": "bad"}
	plan, _ := c.plan(t)
	writes := 0
	counted := atomicChart(t)
	counted.values = c.values
	countedPlan, _ := counted.plan(t)
	behind := counted.behind(t, func(w kubetest.Write) { writes = w.N })
	behind.applyJob(t, countedPlan).run(t)
	if writes < 10 {
		t.Fatalf("an upgrade that is put back makes %d writes", writes)
	}
	c.kill(t, plan, writes-3)
	c.values = map[string]string{"value": "good"}
	c.goOnWith(t, plan)
	c.wantDeployed(t)
	if got := c.data(t, "one") + c.data(t, "comes"); got != `{"key":"good"}{"key":"here"}` {
		t.Errorf("the objects are %s", got)
	}
}

// goOnWith completes a killed apply by a plan of another effect.
func (c *charted) goOnWith(t *testing.T, plan *jobDir) {
	t.Helper()
	next := c.planAfter(t, plan)
	c.applyJob(t, next).must(t)
}
