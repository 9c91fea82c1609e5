package drift

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/jobspec"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func edited() ctlapi.ComponentDrift {
	at := noon.Add(-2 * time.Hour)
	rule := jobspec.DriftRule{Kind: "ConfigMap", Path: "data", Reason: "an experiment", By: "ops@shop.test", Until: noon.Add(24 * time.Hour)}
	return ctlapi.ComponentDrift{
		Name: "api", Type: "helm_chart", State: ctlapi.ComponentDriftStateDrifted,
		Episode: &ctlapi.DriftEpisode{ID: "drf_1", Class: "human_edit", OpenedAt: noon.Add(-time.Hour)}, LookedAt: &at,
		Found: &jobspec.Drift{
			Change: "chg_1", Looked: 7, Counts: map[string]int{"human_edit": 1, "accepted": 1, "controller": 4}, More: 4,
			Objects: []jobspec.DriftObject{
				{Address: "Deployment.apps shop/api", Drifted: true, Differences: []jobspec.DriftDifference{
					{Path: "spec.replicas", Have: "5", Want: "3", Class: "human_edit", Manager: "kubectl-scale\x1b[31m", Time: &at},
				}},
				{Address: "ConfigMap shop/flags", Differences: []jobspec.DriftDifference{{Path: "data.new", Have: `"on"`, Class: "human_edit", Accepted: &rule}}},
			},
		},
	}
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	calm := ctlapi.ComponentDrift{Name: "web", State: ctlapi.ComponentDriftStateNone, Found: &jobspec.Drift{Looked: 2, Objects: []jobspec.DriftObject{{Address: "x"}}}}
	got := append(differences([]ctlapi.ComponentDrift{edited(), calm}, noon, false), nextSteps("acme", []ctlapi.ComponentDrift{calm, edited()})...)
	want := []string{
		"",
		"api, of change chg_1:",
		"  Deployment.apps shop/api",
		`    spec.replicas is 5, deployed was 3 (edited by hand by kubectl-scale⟨U+001B⟩[31m, 2 h ago)`,
		"  ConfigMap shop/flags",
		`    data.new is "on", which was not deployed (edited by hand); accepted by ops@shop.test until 2026-11-21 12:00 UTC: an experiment`,
		"  and 4 differences more",
		"",
		"to put back what was deployed, after a look at the plan: berth installs drift acme api --reconcile --watch",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if steps := nextSteps("acme", []ctlapi.ComponentDrift{calm}); steps != nil {
		t.Errorf("nothing drifted: %q", steps)
	}
}

// However much a runner lists, people get a page of it and a count.
func TestManyDifferences(t *testing.T) {
	t.Parallel()
	c := edited()
	for range 100 {
		c.Found.Objects = append(c.Found.Objects, c.Found.Objects[0])
	}
	lines := differences([]ctlapi.ComponentDrift{c}, noon, false)
	if last := lines[len(lines)-1]; last != "  and 66 differences more" || len(lines) > 2*maxLines+3 {
		t.Errorf("%d lines, the last is %q", len(lines), last)
	}
}

func TestWhat(t *testing.T) {
	t.Parallel()
	if got := what(edited()); got != "1 of 7 objects, 1 edited by hand, 1 accepted" {
		t.Errorf("got %q", got)
	}
	why := "the cluster does not answer"
	failed := edited()
	failed.State, failed.Why = ctlapi.ComponentDriftStateFailed, &why
	if got := what(failed); !strings.Contains(got, why) {
		t.Errorf("got %q", got)
	}
}
