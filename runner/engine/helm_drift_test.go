package engine_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"

	"github.com/berth-dev/berth/pkg/jobspec"
)

func TestHelmStaleByAnEdit(t *testing.T) {
	t.Parallel()
	c := chart(t, map[string]string{"templates/one.yaml": oneMap, "templates/two.yaml": configMap("two", "{{ .Values.value }}")})
	c.roll(t)
	c.values = map[string]string{"value": "two"}
	plan, _ := c.plan(t)
	c.edit(t, "ConfigMap/two", `{"data":{"key":"by hand"}}`)
	r := c.applyJob(t, plan).run(t)
	if r.Outcome != jobspec.OutcomeStale {
		t.Fatalf("outcome %s: %s", r.Outcome, r.Error)
	}
	want := []jobspec.Difference{{Field: "ConfigMap/two: data.key", Want: `"one"`, Got: `"by hand"`}}
	if diff := cmp.Diff(want, r.Differs); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
	if got := c.data(t, "one") + c.data(t, "two"); got != `{"key":"one"}{"key":"by hand"}` {
		t.Errorf("it wrote: %s", got)
	}
	if diff := cmp.Diff([]release.Status{release.StatusDeployed}, c.history(t)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	// The plan after it shows the edit, and takes it back when approved.
	plan, _ = c.plan(t)
	wantContains(t, "summary", strings.Join(c.summary(t, plan), "\n"), `update ConfigMap NS/two data.key: "by hand" -> "two"`)
	c.applyJob(t, plan).must(t)
	if got := c.data(t, "two"); got != `{"key":"two"}` {
		t.Errorf("the second is %s", got)
	}
}

func TestHelmLeavesWhatOthersAdd(t *testing.T) {
	t.Parallel()
	c := chart(t, map[string]string{"templates/one.yaml": oneMap})
	c.roll(t)
	c.edit(t, "ConfigMap/one", `{"data":{"more":"of somebody else"}}`)
	c.values = map[string]string{"value": "two"}
	plan, _ := c.plan(t)
	c.edit(t, "ConfigMap/one", `{"metadata":{"annotations":{"note":"after the plan"}}}`)
	c.applyJob(t, plan).must(t)
	if got := c.data(t, "one"); got != `{"key":"two","more":"of somebody else"}` {
		t.Errorf("the first is %s", got)
	}
	// An object that somebody removed is made again, as the plan says.
	c.delete(t, "ConfigMap/one")
	plan, r := c.plan(t)
	if r.NoChange {
		t.Error("a missing object is no change")
	}
	c.applyJob(t, plan).must(t)
	if got := c.data(t, "one"); got != `{"key":"two"}` {
		t.Errorf("the first is %s", got)
	}
}

func TestHelmOwnership(t *testing.T) {
	t.Parallel()
	c := chart(t, map[string]string{"templates/one.yaml": oneMap})
	c.namespace = c.Namespace(t)
	c.spec.Namespace = c.namespace
	c.put(t, "one", "theirs")
	j := c.planJob(t)
	r := j.run(t)
	if r.Outcome != jobspec.OutcomeFailed {
		t.Fatalf("outcome %s", r.Outcome)
	}
	wantContains(t, "error", r.Error, "ConfigMap "+c.namespace+"/one belongs to no release")
	wantContains(t, "remedy", r.Remedy, "take_ownership")

	c.spec.TakeOwnership = true
	plan, _ := c.plan(t)
	got := strings.Join(c.summary(t, plan), "\n")
	wantContains(t, "summary", got, `data.key: "theirs" -> "one"`)
	wantContains(t, "summary", got, "taken over")
	c.applyJob(t, plan).must(t)
	if got := c.data(t, "one"); got != `{"key":"one"}` {
		t.Errorf("it is %s", got)
	}

	// What is of another release is never taken.
	other := chart(t, map[string]string{"templates/one.yaml": oneMap})
	other.namespace, other.spec.Namespace = c.namespace, c.namespace
	other.spec.ReleaseName, other.spec.TakeOwnership = "other", true
	r = other.planJob(t).run(t)
	wantContains(t, "error", r.Error, "one belongs to release web")
}

func TestHelmFence(t *testing.T) {
	t.Parallel()
	c := chart(t, map[string]string{"templates/one.yaml": oneMap})
	c.roll(t)
	c.values = map[string]string{"value": "two"}
	plan, _ := c.plan(t)
	zombie := c.applyJob(t, plan)
	c.applyJob(t, plan).must(t)
	r := zombie.run(t)
	if r.Outcome != jobspec.OutcomeRefused || len(r.Differs) != 1 || r.Differs[0].Field != "fence" {
		t.Errorf("a zombie's outcome is %s: %s (%v)", r.Outcome, r.Error, r.Differs)
	}
	if diff := cmp.Diff([]release.Status{release.StatusSuperseded, release.StatusDeployed}, c.history(t)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

func TestHelmDrift(t *testing.T) {
	t.Parallel()
	c := chart(t, map[string]string{"templates/one.yaml": oneMap, "templates/two.yaml": configMap("two", "{{ .Values.value }}"), "templates/three.yaml": configMap("three", "three")})
	_, look := c.roll(t)
	if got := alerts(c.deployed, drifted(t, c.deployed, look)); got != nil {
		t.Errorf("nobody touched it: %q", got)
	}
	c.edit(t, "ConfigMap/one", `{"data":{"key":"by hand"}}`)
	c.edit(t, "ConfigMap/two", `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`)
	c.delete(t, "ConfigMap/three")
	c.put(t, "three", "three") // somebody makes it again
	want := []string{
		"ConfigMap NS/three: drift: somebody else made this object: again, or before Berth came (by berth-engine",
		`ConfigMap NS/two: drift: metadata.labels is missing, the release wants {"app.kubernetes.io/managed-by":"Helm"}`,
		`ConfigMap NS/one: edited by hand: data.key is "by hand", the release wants "one" (by kubectl-edit`,
	}
	if diff := cmp.Diff(want, alerts(c.deployed, drifted(t, c.deployed, look))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
