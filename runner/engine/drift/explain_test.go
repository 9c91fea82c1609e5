package drift_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/pkg/redact"
	"github.com/berth-dev/berth/runner/engine/drift"
)

// named finds a scenario.
func named(t testing.TB, name string) recording {
	t.Helper()
	for _, s := range scenarios {
		if s.name == name {
			return s.recorded(t)
		}
	}
	t.Fatalf("no scenario %q", name)
	return recording{}
}

func entries(obj *unstructured.Unstructured) []any {
	list, _, _ := unstructured.NestedSlice(obj.Object, "metadata", "managedFields")
	return list
}

// by makes one manager the author of all that is live.
func by(o *drift.Object, manager string) {
	for _, e := range o.Live.Object["metadata"].(map[string]any)["managedFields"].([]any) {
		e.(map[string]any)["manager"] = manager
	}
}

func TestWholeObjects(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		make func(*drift.Object)
		want string // class, what, manager; "" for none that alerts
	}{
		{"as it was", func(*drift.Object) {}, ""},
		{"gone", func(o *drift.Object) { o.Live = nil }, "real gone "},
		{"just being deleted", func(o *drift.Object) {
			o.Live.Object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-11-01T00:00:00Z"
		}, "real gone "},
		{"could not be read", func(o *drift.Object) { o.Live, o.Unread = nil, drift.Forbidden }, "unknown unread "},
		{"no longer in the release", func(o *drift.Object) { o.Wanted = nil }, "real extra "},
		{"no longer in the release, and gone", func(o *drift.Object) { o.Wanted, o.Live = nil, nil }, ""},
		{"no longer in the release, and kept on purpose", func(o *drift.Object) { o.Wanted, o.Keeps = nil, "protected" }, ""},
		{"no longer in the release, and somebody else's", func(o *drift.Object) { o.Wanted = nil; by(o, "kubectl-create") }, "unknown extra kubectl-create"},
		{"another uid", func(o *drift.Object) { o.UID = "another" }, "real recreated berth"},
		{"the uid that was recorded", func(o *drift.Object) { o.UID = string(o.Live.GetUID()) }, ""},
		{"made again by kubectl", func(o *drift.Object) { by(o, "kubectl-create") }, "unknown recreated kubectl-create"},
		{"written by others only, but with its uid", func(o *drift.Object) { by(o, "kubectl-create"); o.UID = string(o.Live.GetUID()) }, ""},
		{"deployed by Helm before Berth", func(o *drift.Object) { by(o, "helm") }, ""},
		{"deployed by Helm as another release", func(o *drift.Object) {
			by(o, "helm")
			o.Live.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "other"})
		}, "unknown recreated helm"},
		{"of another kind", func(o *drift.Object) { o.Live.SetKind("Secret") }, "real recreated "},
		{"nothing left of Berth, but made before", func(o *drift.Object) {
			by(o, "kubectl-edit")
			o.Live.SetCreationTimestamp(metav1.NewTime(o.Live.GetCreationTimestamp().Add(-time.Hour)))
		}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o := named(t, "Helm by hand").object()
			o.Live = o.Tried.DeepCopy() // what an apply makes of it: no edit
			tc.make(&o)
			got := ""
			for _, d := range drift.Explain(o, drift.Secrets{}).Differences {
				if d.Path == drift.WholeObject && d.Alerts() {
					got = fmt.Sprintf("%s %s %s", d.Class, d.What, d.Manager)
				}
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestManagers holds that each name of the table, and each sign that comes before
// it, leads to one class.
func TestManagers(t *testing.T) {
	t.Parallel()
	for manager, want := range map[string]drift.Class{
		"kubectl": drift.HumanEdit, "kubectl-client-side-apply": drift.HumanEdit, "kubectl-set": drift.HumanEdit, "oc": drift.HumanEdit,
		"k9s": drift.HumanEdit, "Lens": drift.HumanEdit, "node-fetch": drift.HumanEdit, "Mozilla": drift.HumanEdit,
		"curl": drift.HumanEdit, "python-requests": drift.HumanEdit, "Terraform": drift.HumanEdit, "helm": drift.HumanEdit, "Helm": drift.HumanEdit,
		"kube-controller-manager": drift.Controller, "keda-operator": drift.Controller, "cert-manager-cainjector": drift.Controller,
		"pilot-discovery": drift.Controller, "istio-sidecar": drift.Controller, "argocd-controller": drift.Controller,
		"acme-controller": drift.Controller, "acme-webhook": drift.Controller, "manager": drift.Controller,
		"": drift.Unknown, "unknown": drift.Unknown, "before-first-apply": drift.Unknown, "ancient-changes": drift.Unknown,
		"OpenAPI-Generator": drift.Unknown, "Go-http-client": drift.Unknown,
		"acme": drift.Unknown, "controller-of-mine": drift.Unknown, "kubectl2": drift.Unknown, "berth2": drift.Unknown, "BERTH": drift.Unknown,
	} {
		t.Run(manager, func(t *testing.T) {
			t.Parallel()
			o := named(t, "unknown manager").object()
			list := entries(o.Live)
			list[len(list)-1].(map[string]any)["manager"] = manager
			if err := unstructured.SetNestedSlice(o.Live.Object, list, "metadata", "managedFields"); err != nil {
				t.Fatal(err)
			}
			f := drift.Explain(o, drift.Secrets{})
			if len(f.Differences) != 1 || f.Differences[0].Class != want || f.Differences[0].Manager != manager {
				t.Errorf("got %+v, want %s", f.Differences, want)
			}
		})
	}
}

func TestBrokenManagedFields(t *testing.T) {
	t.Parallel()
	deep := map[string]any{}
	for range 100 {
		deep = map[string]any{"f:x": deep}
	}
	many := make([]any, 100)
	for i := range many {
		many[i] = map[string]any{"manager": "kubectl-edit", "fieldsV1": map[string]any{"f:data": map[string]any{"f:mode": map[string]any{}}}}
	}
	for name, fields := range map[string]any{
		"no list":       "text",
		"no table":      []any{"text"},
		"no fields":     []any{map[string]any{"manager": "berth"}},
		"unknown kind":  []any{map[string]any{"manager": "berth", "fieldsV1": map[string]any{"x:y": map[string]any{}}}},
		"a broken key":  []any{map[string]any{"manager": "berth", "fieldsV1": map[string]any{"k:{": map[string]any{}}}},
		"a broken item": []any{map[string]any{"manager": "berth", "fieldsV1": map[string]any{`v:{"a":`: map[string]any{}}}},
		"no tables":     []any{map[string]any{"manager": "berth", "fieldsV1": map[string]any{"f:data": "all"}}},
		"too deep":      []any{map[string]any{"manager": "berth", "fieldsV1": deep}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := named(t, "edit under Berth's name").object()
			o.Live.Object["metadata"].(map[string]any)["managedFields"] = fields
			f := drift.Explain(o, drift.Secrets{})
			if len(f.Differences) != 1 || f.Differences[0].Class != drift.Unknown {
				t.Errorf("got %+v", f.Differences)
			}
		})
	}
	o := named(t, "edit under Berth's name").object()
	o.Live.Object["metadata"].(map[string]any)["managedFields"] = many
	if f := drift.Explain(o, drift.Secrets{}); f.Worst() != drift.HumanEdit {
		t.Errorf("what can be read of many entries: %+v", f.Differences)
	}
}

func TestManyDifferencesAreBounded(t *testing.T) {
	t.Parallel()
	o := named(t, "unknown manager").object()
	data := map[string]any{}
	for i := range 2000 {
		data[fmt.Sprintf("key%04d", i)] = "x"
	}
	o.Live.Object["data"] = data
	f := drift.Explain(o, drift.Secrets{})
	last := f.Differences[len(f.Differences)-1]
	if len(f.Differences) != 501 || last.What != drift.Unbounded || !last.Alerts() {
		t.Errorf("%d differences, the last is %+v", len(f.Differences), last)
	}
}

// TestHugeObjectsEnd holds that an object as large and as deep as an API server
// can send costs no more than reading it does.
func TestHugeObjectsEnd(t *testing.T) {
	t.Parallel()
	nest := func(depth int, inner any, around func(any) any) any {
		for range depth {
			inner = around(inner)
		}
		return inner
	}
	wide, fields := map[string]any{}, map[string]any{}
	for i := range 60_000 {
		wide[fmt.Sprint(i)], fields[fmt.Sprintf("f:%d", i)] = "x", map[string]any{}
	}
	var items []any
	for i := range 20_000 {
		items = append(items, map[string]any{"name": fmt.Sprint(i), "value": []any{map[string]any{"name": "x"}}})
	}
	for name, v := range map[string]any{
		"wide":         wide,
		"deep tables":  nest(9000, "x", func(v any) any { return map[string]any{"a": v} }),
		"deep lists":   nest(9000, "x", func(v any) any { return []any{map[string]any{"name": "a", "b": v}} }),
		"a long list":  items,
		"items deep":   nest(500, items, func(v any) any { return []any{map[string]any{"name": "a", "b": v}} }),
		"deep with it": nest(9000, wide, func(v any) any { return map[string]any{"a": v} }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := named(t, "edit under Berth's name").object()
			o.Live.Object["spec"], o.Live.Object["data"] = v, v
			o.Tried.Object["spec"] = v
			o.Live.Object["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{"manager": "berth", "fieldsV1": map[string]any{
				"f:spec": fields, "f:data": nest(9000, fields, func(v any) any { return map[string]any{"f:a": v} }),
			}}}
			began := time.Now()
			drift.Explain(o, drift.Secrets{})
			drift.NeedsTry(o)
			if took := time.Since(began); took > 40*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

// TestSecretsStaySecret puts a secret wherever an object has room for one, and
// looks at all that comes out.
func TestSecretsStaySecret(t *testing.T) {
	t.Parallel()
	const password, marked = "aHVudGVyMg==", "correct-horse-battery"
	known := redact.New([]byte(marked))
	secret := named(t, "Secret edited by hand").object()
	applied := named(t, "Secret applied by kubectl").object()
	plain := named(t, "unknown manager").object()
	plain.Live.Object["data"] = map[string]any{"mode": "x" + marked + "x", marked: "1"}
	plain.Live.SetFinalizers([]string{"a/" + marked})
	long := named(t, "unknown manager").object()
	long.Live.Object["data"] = map[string]any{"mode": strings.Repeat("x", 250) + marked}
	var whole []drift.Object
	for _, o := range []drift.Object{secret, applied} {
		o.Live = o.Live.DeepCopy()
		delete(o.Live.Object, "data")
		whole = append(whole, o)
	}
	for _, key := range [][]byte{nil, []byte("key")} {
		for i, o := range append(whole, secret, applied, plain, long) {
			report := drift.Report{Findings: []drift.Finding{drift.Explain(o, drift.Secrets{Known: known, Key: key})}}
			text := fmt.Sprintf("%+v %s", report, strings.Join(report.Lines(10), "\n"))
			for _, secret := range []string{password, marked, "hunter2", "swordfish", "c3dvcmRmaXNo", marked[:8]} {
				if strings.Contains(text, secret) {
					t.Errorf("object %d shows %q: %s", i, secret, text)
				}
			}
			if !strings.Contains(text, "(sensitive") || report.Findings[0].Worst() == "" {
				t.Errorf("object %d: %s", i, text)
			}
		}
	}
	one := drift.Explain(secret, drift.Secrets{Key: []byte("one")}).Differences
	same := drift.Explain(secret, drift.Secrets{Key: []byte("one")}).Differences
	two := drift.Explain(secret, drift.Secrets{Key: []byte("two")}).Differences
	if one[0].Have == one[0].Want || one[0].Have != same[0].Have || one[0].Have == two[0].Have {
		t.Errorf("digests: %+v %+v %+v", one, same, two)
	}
}

// TestHostileNames shows what others wrote as one line.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	o := named(t, "unknown manager").object()
	list := entries(o.Live)
	list[len(list)-1].(map[string]any)["manager"] = "kubectl-\x1b[2J\nReal drift" + strings.Repeat("x", 1000)
	if err := unstructured.SetNestedSlice(o.Live.Object, list, "metadata", "managedFields"); err != nil {
		t.Fatal(err)
	}
	line := drift.Explain(o, drift.Secrets{}).Line()
	if strings.ContainsAny(line, "\x1b\n") || len(line) > 500 {
		t.Errorf("line %q", line)
	}
}

func TestNothingIsChanged(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios {
		o, before := s.recorded(t).object(), s.recorded(t).object()
		drift.Explain(o, drift.Secrets{})
		if diff := cmp.Diff(before, o); diff != "" {
			t.Errorf("%s (-before +after):\n%s", s.name, diff)
		}
	}
}

func BenchmarkExplain(b *testing.B) {
	var objects []drift.Object
	for i := range 1000 {
		objects = append(objects, scenarios[i%len(scenarios)].recorded(b).object())
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, o := range objects {
			drift.Explain(o, drift.Secrets{Key: []byte("key")})
		}
	}
	b.ReportMetric(float64(len(objects)*b.N)/b.Elapsed().Seconds(), "objects/s")
}

var noon = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

// TestWhy holds what is said of differences that managedFields leave open.
func TestWhy(t *testing.T) {
	t.Parallel()
	why := func(o drift.Object, path string) string {
		for _, d := range drift.Explain(o, drift.Secrets{}).Differences {
			if strings.HasPrefix(d.Path, path) && d.Alerts() {
				return d.Why
			}
		}
		return ""
	}
	removed := named(t, "label by hand").object()
	unstructured.RemoveNestedField(removed.Live.Object, "metadata", "labels", "app")
	if got := why(removed, "metadata.labels.app"); !strings.Contains(got, "nobody in managedFields explains") || !strings.Contains(got, "of the others kubectl-label wrote last, at 2026-") {
		t.Errorf("a removed field: %s", got)
	}
	quiet := named(t, "quiet manifest").object()
	quiet.Tried, quiet.Untried = nil, drift.Forbidden
	if got := why(quiet, "spec"); !strings.Contains(got, "without a dry run (forbidden)") {
		t.Errorf("without a dry run: %s", got)
	}
	other := named(t, "Helm of another release").object()
	for _, d := range drift.Explain(other, drift.Secrets{}).Differences {
		if d.Path == "data.mode" && d.Why != "the object is of Helm release shop/other now" {
			t.Errorf("another release: %s", d.Why)
		}
	}
}
