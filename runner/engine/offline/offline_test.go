package offline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/permissions"
	"github.com/berth-dev/berth/runner/engine/offline"
)

func objects(r permissions.Rendered) []string {
	var all []string
	for _, o := range r.Objects {
		metadata, _ := o.Body["metadata"].(map[string]any)
		all = append(all, fmt.Sprintf("%s %v/%v", o.From, o.Body["kind"], metadata["name"]))
	}
	return all
}

// A chart gives its objects, hooks and kinds; its tests are never run, and what
// it reads from a cluster is named.
func TestChart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		values map[string]string
		want   []string
	}{
		"a value that turns something on": {map[string]string{"on": "true"}, []string{"src/templates/web.yaml Deployment/web"}},
		"a value that turns it off":       {map[string]string{"on": "false"}, nil},
	} {
		r := offline.Render(permissions.Source{Component: "web", Namespace: "shop", Chart: "testdata/chart", File: "src", Release: "web", Values: tc.values})
		want := append([]string{"src/crds/boats.yaml CustomResourceDefinition/boats.example.com", "src/templates/secret.yaml Secret/new"}, tc.want...)
		want = append(want, "src/templates/web.yaml Job/migrate")
		if diff := cmp.Diff(want, objects(r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if len(r.Unknown) != 1 || r.Unknown[0].From != "web (src/templates/secret.yaml:1)" || !strings.Contains(r.Unknown[0].Text, "lookup") {
			t.Errorf("%s: unknown is %v", name, r.Unknown)
		}
	}
}

func TestManifest(t *testing.T) {
	t.Parallel()
	r := offline.Render(permissions.Source{Component: "extras", File: "extras.yaml", Manifest: `# a comment
apiVersion: v1
kind: Service
metadata: {name: a}
---

---
apiVersion: v1
kind: ConfigMap
metadata: {name: b}
--- # the last
kind: [
`})
	if diff := cmp.Diff([]string{"extras.yaml:2 Service/a", "extras.yaml:8 ConfigMap/b"}, objects(r)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if len(r.Unknown) != 1 || r.Unknown[0].From != "extras (extras.yaml:12)" {
		t.Errorf("unknown is %v", r.Unknown)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := offline.Run(strings.NewReader(`[{"component":"web","chart":"testdata/none","file":"src"}]`), &out); err != nil || !strings.Contains(out.String(), "cannot be rendered") {
		t.Errorf("%v: %s", err, out.String())
	}
	if err := offline.Run(strings.NewReader(`{`), &out); err == nil {
		t.Error("half a request was taken")
	}
}
