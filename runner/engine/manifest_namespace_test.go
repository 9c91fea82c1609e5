package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A Namespace of which the manifest says no more than the name is made once.
func TestManifestWithABareNamespace(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		other bool // it is not the component's own namespace
	}{{name: "its own"}, {name: "another one", other: true}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := deploy(t)
			name, created := d.namespace, "create Namespace NS"
			if tc.other {
				name, created = d.Name(t), "create Namespace "
			}
			manifest := "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + name + "\n---\n" + configMap("settings", "one")
			plan, _ := d.plan(t, manifest)
			wantContains(t, "summary of the first plan", d.summary(t, plan)[len(d.summary(t, plan))-2], created)
			d.applyJob(t, plan).must(t)
			if next, result := d.plan(t, manifest); !result.NoChange {
				t.Errorf("the second plan has %v", d.summary(t, next))
			}
			// What the manifest says more of it later is a change, once.
			labelled := "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + name + "\n  labels: {team: web}\n---\n" + configMap("settings", "one")
			d.roll(t, labelled)
			if next, result := d.plan(t, labelled); !result.NoChange {
				t.Errorf("after a label the next plan has %v", d.summary(t, next))
			}
			plan, _ = d.planDestroy(t)
			d.applyJob(t, plan).must(t)
			if diff := cmp.Diff(true, d.get(t, "Namespace/"+name) == nil); diff != "" {
				t.Errorf("the namespace is gone after the teardown (-want +got):\n%s", diff)
			}
		})
	}
}
