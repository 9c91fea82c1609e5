package survey_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/runner/engine/drift"
	"github.com/berth-dev/berth/runner/engine/kube"
	"github.com/berth-dev/berth/runner/engine/survey"
)

func object(kind, name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "shop"}, "data": map[string]any{"key": value},
	}}
}

// deploy puts n objects into the cluster as Berth would, and returns them as wanted.
func (s *server) deploy(kind string, n int) []*unstructured.Unstructured {
	var wanted []*unstructured.Unstructured
	for i := range n {
		obj := object(kind, fmt.Sprintf("a%04d", i), "one")
		wanted = append(wanted, obj)
		live := obj.DeepCopy()
		live.SetUID("uid")
		live.SetResourceVersion("1")
		s.objects["/api/v1/namespaces/shop/"+strings.ToLower(kind)+"s/"+obj.GetName()] = live.Object
		owned(live, "berth")
	}
	return wanted
}

func owned(live *unstructured.Unstructured, manager string) {
	live.Object["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{
		"manager": manager, "operation": "Update", "time": "2026-11-01T00:00:00Z",
		"fieldsV1": map[string]any{"f:data": map[string]any{"f:key": map[string]any{}}},
	}}
}

// edit changes an object as somebody would with kubectl.
func (s *server) edit(kind, name string) {
	live := &unstructured.Unstructured{Object: s.objects["/api/v1/namespaces/shop/"+kind+"s/"+name]}
	live.Object["data"] = map[string]any{"key": "by hand"}
	owned(live, "kubectl-edit")
}

func conflict(r *http.Request) (metav1.StatusReason, int) {
	if r.Method == http.MethodPatch {
		return metav1.StatusReasonConflict, http.StatusConflict
	}
	return "", 0
}

func TestLook(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		kind   string
		wanted int
		prep   func(*server)
		want   map[string]int // requests
		alerts []string       // class and name
	}{
		{name: "few objects are read one by one", kind: "ConfigMap", wanted: 3, want: map[string]int{"GET": 3}},
		{name: "many are listed", kind: "ConfigMap", wanted: 600, want: map[string]int{"LIST": 3}},
		{
			name: "only what differs is tried", kind: "ConfigMap", wanted: 600,
			prep:   func(s *server) { s.edit("configmap", "a0300") },
			want:   map[string]int{"LIST": 3, "PATCH": 1},
			alerts: []string{"human_edit a0300"},
		},
		{name: "Secrets are never listed", kind: "Secret", wanted: 20, want: map[string]int{"GET": 20}},
		{
			name: "a list that is forbidden", kind: "ConfigMap", wanted: 20,
			prep: func(s *server) {
				s.fail = func(r *http.Request) (metav1.StatusReason, int) {
					if strings.HasSuffix(r.URL.Path, "configmaps") {
						return metav1.StatusReasonForbidden, http.StatusForbidden
					}
					return "", 0
				}
			},
			want: map[string]int{"LIST": 1, "GET": 20},
		},
		{
			name: "a list that is too old for its next page", kind: "ConfigMap", wanted: 260,
			prep: func(s *server) {
				s.fail = func(r *http.Request) (metav1.StatusReason, int) {
					if r.URL.Query().Get("continue") != "" {
						return metav1.StatusReasonExpired, http.StatusGone
					}
					return "", 0
				}
			},
			want: map[string]int{"LIST": 2, "GET": 10},
		},
		{
			name: "a place full of objects of others", kind: "ConfigMap", wanted: 10,
			prep: func(s *server) {
				for i := range 6000 {
					name := fmt.Sprintf("A%04d", i) // before ours
					s.objects["/api/v1/namespaces/shop/configmaps/"+name] = object("ConfigMap", name, "").Object
				}
			},
			want: map[string]int{"LIST": 12, "GET": 10},
		},
		{
			name: "gone", kind: "ConfigMap", wanted: 2,
			prep:   func(s *server) { delete(s.objects, "/api/v1/namespaces/shop/configmaps/a0001") },
			want:   map[string]int{"GET": 2},
			alerts: []string{"real a0001"},
		},
		{
			name: "may not be read", kind: "ConfigMap", wanted: 2,
			prep: func(s *server) {
				s.fail = func(r *http.Request) (metav1.StatusReason, int) {
					if strings.HasSuffix(r.URL.Path, "a0001") {
						return metav1.StatusReasonForbidden, http.StatusForbidden
					}
					return "", 0
				}
			},
			want:   map[string]int{"GET": 2},
			alerts: []string{"unknown a0001"},
		},
		{
			name: "written to in between", kind: "ConfigMap", wanted: 1,
			prep: func(s *server) {
				s.edit("configmap", "a0000")
				tries := 0
				s.fail = func(r *http.Request) (metav1.StatusReason, int) {
					if reason, code := conflict(r); reason != "" {
						if tries++; tries < 3 {
							return reason, code
						}
					}
					return "", 0
				}
			},
			want:   map[string]int{"GET": 3, "PATCH": 3},
			alerts: []string{"human_edit a0000"},
		},
		{
			name: "written to all the time", kind: "ConfigMap", wanted: 1,
			prep:   func(s *server) { s.edit("configmap", "a0000"); s.fail = conflict },
			want:   map[string]int{"GET": 4, "PATCH": 4},
			alerts: []string{"human_edit a0000"}, // managedFields say so without a dry run
		},
		{
			name: "a dry run that is refused, of an edit under Berth's name", kind: "ConfigMap", wanted: 1,
			prep: func(s *server) {
				s.edit("configmap", "a0000")
				owned(&unstructured.Unstructured{Object: s.objects["/api/v1/namespaces/shop/configmaps/a0000"]}, "berth")
				s.fail = func(r *http.Request) (metav1.StatusReason, int) {
					if r.Method == http.MethodPatch {
						return metav1.StatusReasonInvalid, http.StatusUnprocessableEntity
					}
					return "", 0
				}
			},
			want:   map[string]int{"GET": 1, "PATCH": 1},
			alerts: []string{"unknown a0000"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, c := serve(t)
			wanted := s.deploy(tc.kind, tc.wanted)
			if tc.prep != nil {
				tc.prep(s)
			}
			report, err := survey.Look(t.Context(), c, survey.Objects{Wanted: wanted}, drift.Secrets{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, s.counted()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			var alerts []string
			for _, f := range report.Findings {
				if class := f.Worst(); class != "" {
					alerts = append(alerts, string(class)+" "+f.Object.Name)
				}
			}
			if diff := cmp.Diff(tc.alerts, alerts); diff != "" {
				t.Errorf("alerts (-want +got):\n%s", diff)
			}
			// Whatever happened, nothing was sent that may write.
			for _, line := range s.sent {
				if !strings.HasPrefix(line, "GET ") && (!strings.HasPrefix(line, "PATCH ") || !strings.Contains(line, "dryRun=All")) {
					t.Errorf("a survey sent %s", line)
				}
			}
		})
	}
}

func TestFormer(t *testing.T) {
	t.Parallel()
	s, c := serve(t)
	s.deploy("ConfigMap", 2)
	var former []kube.Ref
	for _, name := range []string{"a0000", "a0001", "gone"} {
		former = append(former, kube.RefOf(object("ConfigMap", name, "")))
	}
	report, err := survey.Look(t.Context(), c, survey.Objects{Former: former, Keeps: func(ref kube.Ref, live *unstructured.Unstructured) string {
		if live == nil {
			t.Errorf("%s is not there", ref)
		}
		return map[string]string{"a0001": "protected"}[ref.Name]
	}}, drift.Secrets{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ConfigMap shop/a0000: drift: it was of the component, and is no longer wanted"}
	if diff := cmp.Diff(want, report.Lines(10)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestNoAnswerIsNoDrift holds that a cluster that does not answer, or not us, is
// no cluster in which all is gone.
func TestNoAnswerIsNoDrift(t *testing.T) {
	t.Parallel()
	for name, code := range map[metav1.StatusReason]int{
		metav1.StatusReasonUnauthorized:       http.StatusUnauthorized,
		metav1.StatusReasonServiceUnavailable: http.StatusServiceUnavailable,
	} {
		for _, n := range []int{1, 20} { // got, and listed
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				t.Parallel()
				s, c := serve(t)
				wanted := s.deploy("ConfigMap", n)
				s.fail = func(*http.Request) (metav1.StatusReason, int) { return name, code }
				if report, err := survey.Look(t.Context(), c, survey.Objects{Wanted: wanted}, drift.Secrets{}); err == nil {
					t.Errorf("no error, but %+v", report)
				}
			})
		}
	}
}

func TestNoClusterIsNoDrift(t *testing.T) {
	t.Parallel()
	s, c := serve(t)
	wanted := s.deploy("ConfigMap", 3)
	s.close()
	if report, err := survey.Look(t.Context(), c, survey.Objects{Wanted: wanted}, drift.Secrets{}); err == nil {
		t.Errorf("no error, but %+v", report)
	}
}
