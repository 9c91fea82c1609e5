package engine_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
)

const driftingManifest = `apiVersion: v1
kind: ConfigMap
metadata: {name: one}
data: {key: one, other: one}
---
apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {password: swordfish}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
`

func TestManifestDrift(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	plan, _ := d.plan(t, driftingManifest+"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: two}\n")
	d.applyJob(t, plan).must(t)
	look := d.lookJob(t, plan)
	if got := alerts(d, drifted(t, d, look)); got != nil {
		t.Errorf("nobody touched it: %q", got)
	}
	d.edit(t, "ConfigMap/one", `{"data":{"key":"by hand"}}`)
	d.edit(t, "Service/web", `{"metadata":{"labels":{"team":"blue"}}}`)
	d.edit(t, "Secret/password", `{"data":{"password":"aHVudGVyMg=="}}`)
	d.delete(t, "ConfigMap/two")
	report := drifted(t, d, look)
	got := alerts(d, report)
	want := []string{
		"ConfigMap NS/two: drift: the object is not there",
		`ConfigMap NS/one: edited by hand: data.key is "by hand", the release wants "one" (by kubectl-edit`,
	}
	if len(got) != 4 || cmp.Diff(want, got[:2]) != "" {
		t.Fatalf("got %q", got)
	}
	wantContains(t, "the Secret", got[2], "Secret NS/password: edited by hand: data.password is (sensitive, digest ")
	wantContains(t, "the Service", got[3], `Service NS/web: edited by hand: metadata.labels.team is "blue", the release does not set it (by kubectl-edit`)
	if again := drifted(t, d, look); again.Digest() != report.Digest() {
		t.Error("the same drift has another digest")
	}
	// A release that has less: what is left of the one before is extra.
	smaller, _ := d.plan(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {key: by hand, other: one}\n")
	less := d.lookJob(t, smaller)
	want = []string{
		"Secret NS/password: drift: it was of the component, and is no longer wanted",
		"Service NS/web: drift: it was of the component, and is no longer wanted",
	}
	if diff := cmp.Diff(want, alerts(d, drifted(t, d, less))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// lookJob is a look for drift from what a plan pinned, not yet run.
func (d *deployed) lookJob(t *testing.T, plan *jobDir) *jobDir {
	t.Helper()
	j := d.job(t, jobspec.OperationDrift)
	j.spec.Artifact, j.spec.Drift = nil, &jobspec.DriftLook{Change: "chg_1"}
	copyTree(t, filepath.Join(plan.path, "out/pinned"), filepath.Join(j.path, "in/live"))
	return j
}

// The engine's own look: what a person edits is named with who it was, a rule takes it out
// until it expires, and another apply of the same plan's manifest puts it back.
func TestLookForDrift(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	plan, _ := d.plan(t, driftingManifest)
	d.applyJob(t, plan).must(t)
	if r := d.lookJob(t, plan).must(t); r.Drift == nil || r.Drift.Class != "" || r.Drift.Looked != 3 || r.Drift.Digest != "" {
		t.Fatalf("nobody touched it: %+v", r.Drift)
	}
	d.edit(t, "ConfigMap/one", `{"data":{"key":"by hand"}}`)
	found := d.lookJob(t, plan).must(t).Drift
	if found.Class != "human_edit" || found.AtOnce || found.Change != "chg_1" || len(found.Objects) != 1 || !found.Objects[0].Drifted {
		t.Fatalf("an edit: %+v", found)
	}
	if edit := found.Objects[0].Differences[0]; edit.Manager != "kubectl-edit" || edit.Time == nil || edit.Path != "data.key" || edit.Have != `"by hand"` {
		t.Errorf("the edit is %+v", edit)
	}
	rule := jobspec.DriftRule{Kind: "ConfigMap", Name: "one", Path: "data", Reason: "an experiment", By: "ops@shop.test", Until: time.Now().Add(time.Hour)}
	for _, tc := range []struct {
		name  string
		until time.Time
		class string
	}{{"in force", time.Now().Add(time.Hour), ""}, {"expired", time.Now().Add(-time.Hour), "human_edit"}} {
		rule.Until = tc.until
		look := d.lookJob(t, plan)
		look.spec.Drift.Accept = []jobspec.DriftRule{rule}
		if got := look.must(t).Drift; got.Class != tc.class {
			t.Errorf("a rule that is %s: %+v", tc.name, got)
		}
	}
	hidden := d.lookJob(t, plan)
	hidden.spec.Drift.NoValues = true
	if edit := hidden.must(t).Drift.Objects[0].Differences[0]; strings.Contains(edit.Have+edit.Want, "hand") {
		t.Errorf("values are shown: %+v", edit)
	}
	d.delete(t, "Service/web")
	if got := d.lookJob(t, plan).must(t).Drift; got.Class != "real" || !got.AtOnce {
		t.Errorf("an object is gone: %+v", got)
	}
	again, _ := d.plan(t, driftingManifest)
	d.applyJob(t, again).must(t)
	if got := d.lookJob(t, again).must(t).Drift; got.Class != "" {
		t.Errorf("after an apply: %+v", got)
	}
	nothing := d.job(t, jobspec.OperationDrift)
	nothing.spec.Artifact, nothing.spec.Drift = nil, &jobspec.DriftLook{Change: "chg_1"}
	if r := nothing.run(t); r.Outcome != jobspec.OutcomeFailed || r.Drift != nil {
		t.Errorf("a machine that has nothing of it: %+v", r)
	}
}
