package kube_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// object parses the one object of a YAML text; nil for an empty one.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	objects, err := kube.ParseObjects(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) == 0 {
		return nil
	}
	return objects[0]
}

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, uid: u-1}
spec:
  replicas: REPLICAS
  template:
    spec:
      containers:
      - {name: web, image: IMAGE}
`

func TestFields(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name          string
		before, after string
		want          []kube.Field
	}{
		{
			name:   "nothing differs but what the server keeps",
			before: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, resourceVersion: '1', uid: u, generation: 1}, status: {x: 1}}",
			after:  "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, resourceVersion: '2', managedFields: [{manager: m}], generation: 2}}",
		},
		{
			name:   "a new object has all of its fields, without its name",
			before: "",
			after:  "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, labels: {app.io/x: zz}}, data: {k: v}}",
			want:   []kube.Field{{Path: "data.k", After: `"v"`}, {Path: `metadata.labels["app.io/x"]`, After: `"zz"`}},
		},
		{
			name:   "items with names are told by name",
			before: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: x}, {name: b, image: c}]}}",
			after:  "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: b, image: d}]}}",
			want: []kube.Field{
				{Path: "spec.containers[a].image", Before: `"x"`},
				{Path: "spec.containers[a].name", Before: `"a"`},
				{Path: "spec.containers[b].image", Before: `"c"`, After: `"d"`},
			},
		},
		{
			name:   "another order of named items is a change",
			before: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a}, {name: b}]}}",
			after:  "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: b}, {name: a}]}}",
			want:   []kube.Field{{Path: "spec.containers[order]", Before: `["a","b"]`, After: `["b","a"]`}},
		},
		{
			name:   "other lists are told by place",
			before: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {args: [a, b]}}",
			after:  "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {args: [a, c, d]}}",
			want:   []kube.Field{{Path: "spec.args[1]", Before: `"b"`, After: `"c"`}, {Path: "spec.args[2]", After: `"d"`}},
		},
		{
			name:   "a table that is filled is not also no longer empty",
			before: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {}}",
			after:  "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}",
			want:   []kube.Field{{Path: "data.k", After: `"v"`}},
		},
		{
			name:   "a table that is emptied stays",
			before: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {volumes: [{name: v, emptyDir: {}}]}}",
			after:  "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {volumes: [{name: v}]}}",
			want:   []kube.Field{{Path: "spec.volumes[v].emptyDir", Before: "{}"}},
		},
		{
			name:   "a number and its text differ",
			before: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {x: 1}}",
			after:  "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {x: '1'}}",
			want:   []kube.Field{{Path: "spec.x", Before: "1", After: `"1"`}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := kube.Fields(object(t, tc.before), object(t, tc.after))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSummariseHidesSecrets(t *testing.T) {
	t.Parallel()
	before := object(t, "{apiVersion: v1, kind: Secret, metadata: {name: db, namespace: shop}, data: {password: b2xk}, type: Opaque}")
	after := object(t, "{apiVersion: v1, kind: Secret, metadata: {name: db, namespace: shop, labels: {a: b}}, data: {password: bmV3}, type: Opaque}")
	change := kube.Updated(before, after)
	change.Takes = []kube.Taken{{Path: "data.password", Owner: "kubectl-edit"}}
	unchanged := kube.Updated(before, before)
	kept := kube.Deleted(kube.RefOf(before), before)
	kept.Action, kept.Reason = kube.ActionKeep, "protected"

	want := jobspec.PlanSummary{
		Update: 1,
		Objects: []jobspec.ObjectChange{
			{
				Address: "Secret shop/db", Action: "update", Reason: "takes data.password, owned by kubectl-edit",
				Fields: []jobspec.FieldChange{
					{Path: "data.password", Before: "(sensitive)", After: "(sensitive)"},
					{Path: "metadata.labels.a", After: `"b"`},
				},
			},
			{Address: "Secret shop/db", Action: "keep", Reason: "protected"},
		},
	}
	if diff := cmp.Diff(want, kube.Summarise([]kube.Change{change, unchanged, kept}, nil)); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	password := kube.Summarise([]kube.Change{change}, jobspec.DigestKey("key")).Objects[0].Fields[0]
	was, hidden := jobspec.IsSensitive(password.Before)
	is, alsoHidden := jobspec.IsSensitive(password.After)
	if !hidden || !alsoHidden || was == "" || is == "" || was == is {
		t.Errorf("with a key: %+v", password)
	}
	if s := kube.Summarise([]kube.Change{unchanged, kept}, nil); !s.NoChange {
		t.Error("keeping something counts as a change")
	}
	// A custom resource may be called Secret too; its fields are no secrets.
	other := object(t, "{apiVersion: vault.io/v1, kind: Secret, metadata: {name: db}, data: {path: x}}")
	if got := kube.Diff(nil, other, nil); len(got) != 1 || got[0].After != `"x"` {
		t.Errorf("fields of a Secret of another group: %v", got)
	}
}
