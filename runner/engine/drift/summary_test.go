package drift_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/runner/engine/drift"
)

func report(t *testing.T, names ...string) drift.Report {
	t.Helper()
	var r drift.Report
	for _, name := range names {
		o := named(t, name).object()
		o.Ref.Name = strings.ReplaceAll(name, " ", "-")
		f := drift.Explain(o, drift.Secrets{})
		for i := range f.Differences {
			if f.Differences[i].Time != nil {
				f.Differences[i].Time = &noon
			}
		}
		r.Findings = append(r.Findings, f)
	}
	return r
}

func TestLines(t *testing.T) {
	t.Parallel()
	r := report(t, "label by hand", "k9s", "quiet manifest", "autoscaler of Kubernetes", "unknown manager", "edit under Berth's name", "kubectl scale", "managedFields that somebody removed", "removed by an edit")
	r = r.Accept([]drift.Rule{
		{Kind: "ConfigMap", Name: "k9s", Path: "data", Reason: "debugging", By: "ops@shop.test", Until: noon.Add(time.Hour)},
		{Kind: "*", Path: "metadata.labels", Reason: "cost report", By: "ops@shop.test", Until: noon.Add(-time.Hour)},
	}, noon)
	got := r.Lines(6)
	// The writer before the removal differs in time from run to run of -update.
	want := []string{
		`ConfigMap shop/edit-under-Berth's-name: drift: data.mode is "debug", the release wants "prod"`,
		`Deployment.apps shop/removed-by-an-edit: drift: spec.template.spec.containers[name="web"].env is missing, the release wants [{"name":"MODE","value":"prod"}]`,
		`ConfigMap shop/managedFields-that-somebody-removed: not explained: data.mode is "debug", the release wants "prod"; 1 more`,
		`ConfigMap shop/unknown-manager: not explained: data.mode is "tuned", the release wants "prod" (by acme, 2026-11-02T12:00:00Z)`,
		`Deployment.apps shop/kubectl-scale: edited by hand: spec.replicas is 5, the release wants 3 (by kubectl)`,
		`Deployment.apps shop/label-by-hand: edited by hand: metadata.labels.team is "blue", the release does not set it (by kubectl-label, 2026-11-02T12:00:00Z, accepted by ops@shop.test until 2026-11-02)`,
	}
	if diff := cmp.Diff(want, got[:len(got)-1]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if last := got[len(got)-1]; !strings.HasPrefix(last, "differences that do not alert: 1 accepted by a rule, 1 of other controllers, ") {
		t.Errorf("last line %q", last)
	}
	if short := r.Lines(2); len(short) != 4 || short[2] != "and 4 more objects" {
		t.Errorf("two objects: %q", short)
	}
	if quiet := report(t, "autoscaler of Kubernetes"); quiet.Digest() != "" || len(quiet.Lines(9)) != 1 {
		t.Errorf("quiet: %q", quiet.Lines(9))
	}
}

// TestDigest holds what is one episode of drift, and what is another.
func TestDigest(t *testing.T) {
	t.Parallel()
	base := func() drift.Report { return report(t, "kubectl edit", "k9s", "autoscaler of Kubernetes") }
	edit := func(r drift.Report) *drift.Difference {
		for i := range r.Findings[1].Differences {
			if d := &r.Findings[1].Differences[i]; d.Alerts() {
				return d
			}
		}
		t.Fatal("no edit")
		return nil
	}
	for _, tc := range []struct {
		name   string
		change func(drift.Report) drift.Report
		same   bool
	}{
		{"again", func(r drift.Report) drift.Report { return r }, true},
		{"in another order", func(r drift.Report) drift.Report {
			r.Findings[0], r.Findings[1] = r.Findings[1], r.Findings[0]
			return r
		}, true},
		{"another time and value", func(r drift.Report) drift.Report {
			edit(r).Time, edit(r).Have = nil, `"other"`
			return r
		}, true},
		{"a controller at work", func(r drift.Report) drift.Report { r.Findings = r.Findings[:2]; return r }, true},
		{"another manager", func(r drift.Report) drift.Report { edit(r).Manager = "Lens"; return r }, false},
		{"another field", func(r drift.Report) drift.Report { edit(r).Path = "data.other"; return r }, false},
		{"another object", func(r drift.Report) drift.Report { r.Findings[1].Object.Name = "other"; return r }, false},
		{"accepted", func(r drift.Report) drift.Report { edit(r).Accepted = &drift.Rule{}; return r }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if was, is := base().Digest(), tc.change(base()).Digest(); (was == is) != tc.same {
				t.Errorf("%s, then %s", was, is)
			}
		})
	}
	if d := base().Digest(); !strings.HasPrefix(d, "sha256:") {
		t.Errorf("digest %q", d)
	}
}

func Example() {
	r := drift.Report{}
	fmt.Println(r.Digest() == "", len(r.Lines(10)))
	// Output: true 0
}
