package drift_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/berth-dev/berth/runner/engine/drift"
)

func TestScaledToNothing(t *testing.T) {
	t.Parallel()
	spec := func(obj *unstructured.Unstructured) map[string]any { return obj.Object["spec"].(map[string]any) }
	for name, tc := range map[string]struct {
		change func(o *drift.Object)
		want   []string
	}{
		"as recorded": {func(*drift.Object) {}, []string{"human_edit changed spec.replicas 3 0"}},
		"the release does not say how many": {func(o *drift.Object) {
			delete(spec(o.Wanted), "replicas")
			spec(o.Tried)["replicas"] = int64(0)
		}, []string{"unknown added spec.replicas - 0"}},
		"the release wants none": {func(o *drift.Object) {
			spec(o.Wanted)["replicas"], spec(o.Tried)["replicas"] = int64(0), int64(0)
		}, nil},
		"it is one": {func(o *drift.Object) { spec(o.Live)["replicas"] = int64(1) }, []string{"real changed spec.replicas 3 1"}},
		"an edit of the object leaves a name": {func(o *drift.Object) {
			o.Live.Object["metadata"].(map[string]any)["managedFields"] = append(entries(o.Live), map[string]any{
				"manager": "kubectl-edit", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:replicas": map[string]any{}}},
			})
		}, []string{"human_edit changed spec.replicas 3 0 by kubectl-edit"}},
		"a controller that scales by an edit": {func(o *drift.Object) {
			o.Live.Object["metadata"].(map[string]any)["managedFields"] = append(entries(o.Live), map[string]any{
				"manager": "keda-operator", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:replicas": map[string]any{}}},
			})
		}, []string{"controller changed spec.replicas 3 0 by keda-operator"}},
		"of a kind that may have another default": {func(o *drift.Object) {
			o.Ref.Group = "acme.example"
			for _, obj := range []*unstructured.Unstructured{o.Wanted, o.Live, o.Tried} {
				obj.SetAPIVersion("acme.example/v1")
			}
		}, []string{"real changed spec.replicas 3 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := named(t, "kubectl scale to nothing").object()
			tc.change(&o)
			if diff := cmp.Diff(tc.want, explained(o)); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

// The recording has what the API server makes of a Scale that nobody owns a field of: its
// own code says so.
func TestScaleToNothingNamesNobody(t *testing.T) {
	t.Parallel()
	owners := func(scenario string) (list []metav1.ManagedFieldsEntry) {
		data, err := json.Marshal(entries(named(t, scenario).Live))
		if err == nil {
			err = json.Unmarshal(data, &list)
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			list[i].Time = nil // of two recordings
		}
		return list
	}
	replicas := managedfields.ResourcePathMappings{"apps/v1": fieldpath.MakePathOrDie("spec", "replicas")}
	after, err := managedfields.NewScaleHandler(owners("quiet manifest"), schema.GroupVersion{Group: "apps", Version: "v1"}, replicas).ToParent(nil)
	if err != nil {
		t.Fatal(err)
	}
	shown := func(list []metav1.ManagedFieldsEntry) (lines []string) {
		for _, e := range list {
			lines = append(lines, e.Manager+" "+string(e.Operation)+" "+e.FieldsV1.GetRawString())
		}
		return lines
	}
	if diff := cmp.Diff(shown(after), shown(owners("kubectl scale to nothing"))); diff != "" {
		t.Errorf("the recording (-API server +recording):\n%s", diff)
	}
}
