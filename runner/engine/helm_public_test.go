package engine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// The summary of a plan names each object that `helm template` prints, and no
// other, for charts that others made.
func TestPlansOfPublicCharts(t *testing.T) {
	t.Parallel()
	charts, helm := os.Getenv("BERTH_TEST_PUBLIC"), os.Getenv("HELM")
	c := chart(t, nil)
	if charts == "" || helm == "" {
		t.Fatal("set BERTH_TEST_PUBLIC to what dev/scripts/public.sh prints, and HELM to the helm command")
	}
	version, err := c.Client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(charts, "charts", "*", "Chart.yaml"))
	if err != nil || len(found) < 11 {
		t.Fatalf("%d charts in %s: %v", len(found), charts, err)
	}
	for _, file := range found {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			c := chart(t, nil)
			c.namespace = c.Namespace(t)
			c.spec.Namespace = c.namespace
			plan := c.job(t, jobspec.OperationPlan)
			copyTree(t, dir, filepath.Join(plan.path, "in/artifact"))
			r := plan.run(t)
			if filepath.Base(dir) == "kyverno-policies" {
				// Its kinds come with another chart.
				if r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Error, "ValidatingPolicy") {
					t.Errorf("outcome %s: %s", r.Outcome, r.Error)
				}
				return
			}
			if r.Outcome != jobspec.OutcomeSucceeded {
				t.Fatalf("outcome %s: %s", r.Outcome, r.Error)
			}
			out, err := exec.CommandContext(t.Context(), helm, "template", "web", dir, "--namespace", c.namespace, "--kube-version", version.GitVersion).Output()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(templated(t, c.deployed, string(out)), planned(t, plan)); diff != "" {
				t.Errorf("objects (-helm template +our summary):\n%s", diff)
			}
		})
	}
}

// templated are the objects that helm printed, hooks left out, sorted.
func templated(t *testing.T, d *deployed, text string) []string {
	t.Helper()
	objects, err := kube.ParseObjects(text)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range objects {
		if o.GetAnnotations()["helm.sh/hook"] != "" {
			continue
		}
		namespaced, err := d.Namespaced(o.GroupVersionKind())
		switch {
		case err != nil: // of a CRD of the chart
		case !namespaced:
			o.SetNamespace("")
		case o.GetNamespace() == "":
			o.SetNamespace(d.namespace)
		}
		names = append(names, kube.RefOf(o).Address())
	}
	slices.Sort(names)
	return names
}

// planned are the objects that a summary creates, without the release, its
// namespace, hooks and CRDs from crds/, sorted.
func planned(t *testing.T, plan *jobDir) []string {
	t.Helper()
	var s jobspec.PlanSummary
	plan.readJSON(t, "out/plan.summary.json", &s)
	var names []string
	for _, o := range s.Objects {
		if o.Action == "create" && o.Reason == "" {
			names = append(names, o.Address)
		}
	}
	slices.Sort(names)
	return names
}
