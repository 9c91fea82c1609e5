package kube_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

func named(name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"v": value},
		"metadata": map[string]any{"name": name, "namespace": "shop", "managedFields": []any{map[string]any{"manager": "x"}}},
	}}
}

// Each object that a plan wants or removes is a document, a replacement two.
func TestDocuments(t *testing.T) {
	t.Parallel()
	j := &job.Job{Spec: jobspec.Spec{Kind: jobspec.KindHelmChart, Resource: &jobspec.Resource{Kind: "component", Name: "web"}}}
	ref := func(name string) kube.Ref { return kube.RefOf(named(name, "")) }
	changes := []kube.Change{
		kube.Created(named("made", "1")),
		kube.Updated(named("changed", "1"), named("changed", "2")),
		kube.Updated(named("same", "1"), named("same", "1")),
		{Object: ref("replaced"), Action: kube.ActionReplace, Live: named("replaced", "1"), After: named("replaced", "2")},
		kube.Deleted(ref("removed"), named("removed", "1")),
		kube.Deleted(ref("gone"), nil),
		{Object: ref("kept"), Action: kube.ActionKeep, Live: named("kept", "1")},
		{Object: ref("settled"), Action: kube.ActionCreate, Live: named("settled", "1")}, // of a plan before: it was made meanwhile
	}
	list, err := kube.Documents(j, changes, []*unstructured.Unstructured{named("same", "1"), named("settled", "1")})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range list {
		value := func(raw []byte) string {
			_, after, _ := strings.Cut(string(raw), `"v":"`)
			return strings.SplitN(after+`"`, `"`, 2)[0]
		}
		got = append(got, string(d.Operation)+" "+d.Name+" "+value(d.Old)+">"+value(d.Body))
		if strings.Contains(string(d.Body)+string(d.Old), "managedFields") || d.Component != "web" || d.Of != "helm_chart" || d.Form != policy.FormObject {
			t.Errorf("document %+v", d)
		}
		if d.Unchanged() != strings.Contains(d.Name, "same") {
			t.Errorf("%s is unchanged: %t", d.Name, d.Unchanged())
		}
	}
	want := []string{
		"CREATE ConfigMap shop/made >1", "UPDATE ConfigMap shop/changed 1>2", "UPDATE ConfigMap shop/same 1>1",
		"DELETE ConfigMap shop/replaced 1>", "CREATE ConfigMap shop/replaced >2", "DELETE ConfigMap shop/removed 1>", "CREATE ConfigMap shop/settled >1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
