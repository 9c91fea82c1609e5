package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
	d.roll(t, driftingManifest+"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: two}\n")
	look := d.planJob(t, driftingManifest+"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: two}\n")
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
	less := d.planJob(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {key: by hand, other: one}\n")
	want = []string{
		"Secret NS/password: drift: it was of the component, and is no longer wanted",
		"Service NS/web: drift: it was of the component, and is no longer wanted",
	}
	if diff := cmp.Diff(want, alerts(d, drifted(t, d, less))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
