package drift_test

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/runner/engine/drift"
	"github.com/berth-dev/berth/runner/engine/kube"
)

func rule(change func(*drift.Rule)) drift.Rule {
	r := drift.Rule{Kind: "Deployment", Path: "spec.replicas", Reason: "load test", By: "ops@shop.test", Until: noon.Add(time.Hour)}
	change(&r)
	return r
}

func TestRules(t *testing.T) {
	t.Parallel()
	web := kube.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	replicas := drift.Difference{Path: "spec.replicas", What: drift.Changed, Class: drift.HumanEdit, Manager: "kubectl"}
	env := drift.Difference{Path: `spec.template.spec.containers[name="web"].env[name="MODE"].value`, Class: drift.Real}
	gone := drift.Difference{Path: drift.WholeObject, What: drift.Gone, Class: drift.Real}
	for _, tc := range []struct {
		name   string
		d      drift.Difference
		change func(*drift.Rule)
		want   string // accepted, lapsed or ""
	}{
		{"exactly", replicas, func(*drift.Rule) {}, "accepted"},
		{"with its group", replicas, func(r *drift.Rule) { r.Kind = "Deployment.apps" }, "accepted"},
		{"all kinds", replicas, func(r *drift.Rule) { r.Kind = "*" }, "accepted"},
		{"another kind", replicas, func(r *drift.Rule) { r.Kind = "StatefulSet" }, ""},
		{"another group", replicas, func(r *drift.Rule) { r.Kind = "Deployment.acme.test" }, ""},
		{"the beginning of a kind", replicas, func(r *drift.Rule) { r.Kind = "Deploy" }, ""},
		{"namespace", replicas, func(r *drift.Rule) { r.Namespace = "sh*" }, "accepted"},
		{"another namespace", replicas, func(r *drift.Rule) { r.Namespace = "other" }, ""},
		{"name", replicas, func(r *drift.Rule) { r.Name = "w*b" }, "accepted"},
		{"another name", replicas, func(r *drift.Rule) { r.Name = "w*c" }, ""},
		{"manager", replicas, func(r *drift.Rule) { r.Manager = "kubectl*" }, "accepted"},
		{"another manager", replicas, func(r *drift.Rule) { r.Manager = "kubectl-*" }, ""},
		{"no manager, and one is asked for", env, func(r *drift.Rule) { r.Path, r.Manager = "*", "k9s" }, ""},
		{"path below", env, func(r *drift.Rule) { r.Path = "spec.template" }, "accepted"},
		{"path of an item", env, func(r *drift.Rule) { r.Path = "spec.template.spec.containers" }, "accepted"},
		{"path with a pattern", env, func(r *drift.Rule) { r.Path = "spec.*.env[*].value" }, "accepted"},
		{"the beginning of a path's name", replicas, func(r *drift.Rule) { r.Path = "spec.repl" }, ""},
		{"all fields are not the whole object", gone, func(r *drift.Rule) { r.Path = "*" }, ""},
		{"the whole object", gone, func(r *drift.Rule) { r.Path = drift.WholeObject }, "accepted"},
		{"the whole object is not its fields", replicas, func(r *drift.Rule) { r.Path = drift.WholeObject }, ""},
		{"expired", replicas, func(r *drift.Rule) { r.Until = noon.Add(-time.Hour) }, "lapsed"},
		{"expired just now", replicas, func(r *drift.Rule) { r.Until = noon }, "lapsed"},
		{"without an expiry", replicas, func(r *drift.Rule) { r.Until = time.Time{} }, ""},
		{"without a reason", replicas, func(r *drift.Rule) { r.Reason = " " }, ""},
		{"by nobody", replicas, func(r *drift.Rule) { r.By = "" }, ""},
		{"without a kind", replicas, func(r *drift.Rule) { r.Kind = "" }, ""},
		{"without a path", replicas, func(r *drift.Rule) { r.Path = "" }, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := drift.Finding{Object: web, Differences: []drift.Difference{tc.d}}
			d := f.Accept([]drift.Rule{rule(tc.change)}, noon).Differences[0]
			got := ""
			switch {
			case d.Accepted != nil:
				got = "accepted"
			case d.Lapsed != nil:
				got = "lapsed"
			}
			if got != tc.want || d.Alerts() == (tc.want == "accepted") {
				t.Errorf("got %q (alerts: %v), want %q", got, d.Alerts(), tc.want)
			}
			if f.Differences[0].Accepted != nil || f.Differences[0].Lapsed != nil {
				t.Error("the finding that was given is changed")
			}
		})
	}
}

func TestRulesInForceComeFirst(t *testing.T) {
	t.Parallel()
	f := drift.Finding{Object: kube.Ref{Kind: "Deployment"}, Differences: []drift.Difference{
		{Path: "spec.replicas", Class: drift.Real}, {Path: "spec.replicas", Class: drift.Controller},
	}}
	old, older := rule(func(r *drift.Rule) { r.Until = noon.Add(-time.Hour) }), rule(func(r *drift.Rule) { r.Until = noon.Add(-2 * time.Hour) })
	current := rule(func(*drift.Rule) {})
	got := f.Accept([]drift.Rule{older, old, current}, noon)
	if d := got.Differences[0]; d.Accepted == nil || !d.Accepted.Until.Equal(current.Until) || d.Lapsed != nil {
		t.Errorf("got %+v", d)
	}
	if d := got.Differences[1]; d.Accepted != nil {
		t.Errorf("what does not alert is accepted: %+v", d)
	}
	// The same finding, later: nothing is left of the rule.
	if d := got.Accept([]drift.Rule{older, old, current}, noon.Add(2*time.Hour)).Differences[0]; d.Accepted != nil || !d.Lapsed.Until.Equal(current.Until) {
		t.Errorf("later %+v", d)
	}
}

func TestPatternsEnd(t *testing.T) {
	t.Parallel()
	began := time.Now()
	r := rule(func(r *drift.Rule) { r.Path = strings.Repeat("*a", 500) + "b" })
	f := drift.Finding{Object: kube.Ref{Kind: "Deployment"}, Differences: []drift.Difference{{Path: strings.Repeat("a", 1000), Class: drift.Real}}}
	if f.Accept([]drift.Rule{r}, noon).Differences[0].Accepted != nil {
		t.Error("it matches")
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
}
