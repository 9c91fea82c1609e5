package engine_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// A hook that the cluster would not take fails the plan, not the middle of the
// apply; so do objects, and all of them are named.
func TestHelmPlanTriesHooks(t *testing.T) {
	t.Parallel()
	c := chart(t, map[string]string{"templates/one.yaml": oneMap})
	plan, _ := c.plan(t)
	c.applyJob(t, plan).must(t) // the namespace is there now
	hook := func(name string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", annotations: {helm.sh/hook: \"post-install,post-upgrade\"}}\n"
	}

	c.chart["templates/good.yaml"] = hook("good") + "unknown: the cluster ignores it, and Helm does not mind\n"
	plan, _ = c.plan(t)
	if got := strings.Join(c.summary(t, plan), "\n"); !strings.Contains(got, "(post-upgrade hook)") {
		t.Errorf("summary: %s", got)
	}

	c.chart["templates/bad.yaml"] = hook("Not_A_Name")
	c.chart["templates/worse.yaml"] = hook("Nor_This")
	r := c.planJob(t).run(t)
	for _, want := range []string{
		"post-upgrade hook: create ConfigMap/", "Not_A_Name: the cluster finds it invalid: metadata.name: Invalid value", "; post-upgrade hook: ", "Nor_This",
	} {
		wantContains(t, "error", r.Error, want)
	}
	if r.Outcome != jobspec.OutcomeFailed {
		t.Errorf("result %+v", r)
	}

	delete(c.chart, "templates/bad.yaml")
	delete(c.chart, "templates/worse.yaml")
	c.chart["templates/kind.yaml"] = "apiVersion: example.test/v1\nkind: Later\nmetadata: {name: x, annotations: {helm.sh/hook: post-upgrade}}\n"
	plan, _ = c.plan(t)
	wantContains(t, "plan", plan.read(t, "out/plan.summary.json"), "could not be tried before the apply: Later x")

	delete(c.chart, "templates/kind.yaml")
	c.chart["templates/two.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Bad_One}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: Bad_Two}\n"
	r = c.planJob(t).run(t)
	wantContains(t, "error", r.Error, "Bad_One: the cluster finds it invalid")
	wantContains(t, "error", r.Error, "Bad_Two: the cluster finds it invalid")
}
