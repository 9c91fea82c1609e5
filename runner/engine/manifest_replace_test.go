package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/kubetest"
)

// selecting is a Deployment of no pods whose selector, which is immutable, has a
// value.
func selecting(app string, annotations ...string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {%[2]s}}
spec:
  replicas: 0
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: web, image: example.test/web:1}]}
---
`, app, strings.Join(annotations, ", "))
}

// A field that cannot be changed in place: the plan shows the replacement with
// the server's reason, and the apply does that and nothing else.
func TestManifestReplaces(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.roll(t, selecting("one")+configMap("settings", "one"))
	before := d.get(t, "Deployment/web").GetUID()

	plan, _ := d.plan(t, selecting("two")+configMap("settings", "one"))
	want := []string{"replace Deployment.apps NS/web" +
		` spec.selector.matchLabels.app: "one" -> "two" spec.template.metadata.labels.app: "one" -> "two"` +
		" (it is deleted and made again: the cluster finds it invalid: spec.selector: field is immutable)"}
	if diff := cmp.Diff(want, d.summary(t, plan)); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	again, _ := d.plan(t, selecting("two")+configMap("settings", "one"))
	if diff := cmp.Diff(plan.read(t, "out/plan.canonical.json"), again.read(t, "out/plan.canonical.json")); diff != "" {
		t.Errorf("two plans of the same thing differ:\n%s", diff)
	}
	if d.get(t, "Deployment/web").GetUID() != before {
		t.Fatal("a plan replaced it")
	}
	apply := d.applyJob(t, plan)
	apply.must(t)
	wantContains(t, "log", apply.log(t), "replaced Deployment")
	if d.get(t, "Deployment/web").GetUID() == before {
		t.Error("it is still the old one")
	}
	if _, result := d.plan(t, selecting("two")+configMap("settings", "one")); !result.NoChange {
		t.Error("there is something left to do")
	}
}

// What the server makes up for a Job (its selector and labels) is no part of a
// plan: two plans of the same thing are equal.
func TestManifestReplacesJobs(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	migration := func(text string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate}\nspec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: m, image: example.test/m, args: [" + text + "]}]}}}\n"
	}
	d.roll(t, migration("one")) // which nobody waits for: it is suspended
	plan, _ := d.plan(t, migration("two"))
	again, _ := d.plan(t, migration("two"))
	if diff := cmp.Diff(plan.read(t, "out/plan.canonical.json"), again.read(t, "out/plan.canonical.json")); diff != "" {
		t.Errorf("two plans of the same thing differ:\n%s", diff)
	}
	lines := d.summary(t, plan)
	if len(lines) != 1 || !strings.HasPrefix(lines[0], `replace Job.batch NS/migrate spec.template.spec.containers[m].args[0]: "one" -> "two" (`) {
		t.Errorf("summary is %q", lines)
	}
}

// What must not be replaced is refused, with what can be done.
func TestManifestRefusesToReplace(t *testing.T) {
	t.Parallel()
	claim := func(class string, annotations string) string {
		return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, annotations: {" + annotations + "}}\n" +
			"spec: {storageClassName: " + class + ", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}\n"
	}
	for _, tc := range []struct {
		name          string
		before, after string
		says          string
	}{
		{name: "its annotation forbids it", before: selecting("one"), after: selecting("two", "berth.dev/replace: never"), says: "its annotation berth.dev/replace=never forbids to replace it"},
		{name: "it was forbidden before", before: selecting("one", "berth.dev/replace: never"), after: selecting("two"), says: "berth.dev/replace=never"},
		{name: "it is wrong as a new one too", before: selecting("one"), after: strings.Replace(selecting("one"), "matchLabels: {app: one}", "matchLabels: {app: two}", 1), says: "spec.template.metadata.labels"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := deploy(t)
			d.roll(t, tc.before)
			r := d.planJob(t, tc.after).run(t)
			if r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Error, tc.says) {
				t.Errorf("outcome %s, error %q, want %q in it", r.Outcome, r.Error, tc.says)
			}
		})
	}
	t.Run("a claim of a volume", func(t *testing.T) {
		t.Parallel()
		d := deploy(t)
		plan, _ := d.plan(t, claim("berth-none", ""))
		apply := d.applyJob(t, plan)
		engine := apply.start(t)
		waitFor(t, "the claim", func() bool { return d.get(t, "PersistentVolumeClaim/data") != nil })
		stop(t, engine) // nobody provides it, so it is waited for
		apply.finish(t, engine)
		if r := d.planJob(t, claim("berth-other", "")).run(t); !strings.Contains(r.Error, "loses what it holds") || !strings.Contains(r.Remedy, "berth.dev/replace=always") {
			t.Errorf("error %q, remedy %q", r.Error, r.Remedy)
		}
		plan, _ = d.plan(t, claim("berth-other", "berth.dev/replace: always"))
		if lines := d.summary(t, plan); len(lines) != 1 || !strings.HasPrefix(lines[0], "replace PersistentVolumeClaim NS/data ") {
			t.Errorf("summary is %q", lines)
		}
	})
}

// Somebody makes a field immutable between plan and apply: nothing is deleted
// that nobody agreed to.
func TestManifestDoesNotReplaceWhatWasToBeUpdated(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.roll(t, configMap("settings", "one"))
	plan, _ := d.plan(t, configMap("settings", "two"))
	d.edit(t, "ConfigMap/settings", `{"immutable":true}`)
	before := d.get(t, "ConfigMap/settings").GetUID()
	r := d.applyJob(t, plan).run(t)
	if r.Outcome != jobspec.OutcomeStale || len(r.Differs) == 0 || r.Differs[0].Got != "replace" {
		t.Errorf("outcome %s, differences %+v", r.Outcome, r.Differs)
	}
	if after := d.get(t, "ConfigMap/settings"); after == nil || after.GetUID() != before {
		t.Error("it was deleted")
	}
}

// Killed before and after each write of a replacement, the next plan is the same
// effect, and completes it.
func TestManifestKilledWhileItReplaces(t *testing.T) {
	t.Parallel()
	for n := range 4 { // claim, delete, make, and one more if there is one
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d, done %v", n+1, done), func(t *testing.T) {
				t.Parallel()
				d := deploy(t)
				d.roll(t, selecting("one"))
				before := d.get(t, "Deployment/web").GetUID()
				if writes := countWrites(t, selecting("one"), selecting("two")); n >= writes {
					return
				}
				killedApply(t, d, selecting("two"), n+1, done)
				if after := d.get(t, "Deployment/web"); after == nil || after.GetUID() == before {
					t.Error("it was not replaced")
				}
				if _, result := d.plan(t, selecting("two")); !result.NoChange {
					t.Error("there is something left to do")
				}
			})
		}
	}
}

// countWrites tells how many writes an apply makes that nobody kills.
func countWrites(t *testing.T, before, after string) int {
	t.Helper()
	var writes int
	d := deploy(t)
	d.roll(t, before)
	plan, _ := d.plan(t, after)
	whole := *d
	whole.kubeconfig = d.Proxy(t, func(kubetest.Write) { writes++ })
	whole.applyJob(t, plan).must(t)
	return writes
}
