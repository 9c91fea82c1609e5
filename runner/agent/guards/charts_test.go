package guards_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/berth-dev/berth/pkg/permissions"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/agent/guards"
	"github.com/berth-dev/berth/runner/engine/offline"
)

// rendered are the documents of an install of a chart.
func rendered(t *testing.T, chart string, values map[string]string) []policy.Document {
	t.Helper()
	r := offline.Render(permissions.Source{Component: "web", Namespace: "shop", Chart: chart, Release: "web", File: "web", Values: values})
	if len(r.Objects) == 0 {
		t.Fatalf("%s renders nothing: %v", chart, r.Unknown)
	}
	clusterWide := []string{"Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "PriorityClass", "IngressClass", "StorageClass", "APIService",
		"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ClusterIssuer"}
	var list []policy.Document
	for _, o := range r.Objects {
		metadata, ok := o.Body["metadata"].(map[string]any)
		kind, _ := o.Body["kind"].(string)
		if ok && metadata["namespace"] == nil && !slices.Contains(clusterWide, kind) {
			metadata["namespace"] = "shop"
		}
		raw, err := json.Marshal(o.Body)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, object(t, policy.Create, string(raw)))
	}
	return list
}

// What is ordinary is not asked about: at most an image from elsewhere is warned of.
func TestOrdinaryChartsPass(t *testing.T) {
	t.Parallel()
	g := on(t, nil)
	for chart, values := range map[string]map[string]string{
		"../../../examples/shop/src/chart":      {"image.ref": "registry.shop.example:5000/web@sha256:aa", "image.repository": "registry.shop.example:5000/web"},
		"../../../services/bench/app/src/chart": nil,
	} {
		t.Run(chart, func(t *testing.T) {
			t.Parallel()
			j := g.Judge(t.Context(), guards.Plan{Case: policy.Case{Documents: rendered(t, chart, values)}, Guarded: true}).Judgement
			if policy.Worse(j.Answer, policy.Warn) != policy.Warn {
				t.Errorf("%s: %v", j.Answer, policy.Against(j.Guardrails, policy.Ask))
			}
		})
	}
}

// Charts that others made are asked about only where they bring something for the whole
// cluster.
func TestPublicCharts(t *testing.T) {
	t.Parallel()
	charts, err := filepath.Glob(filepath.Join(os.Getenv("BERTH_TEST_PUBLIC"), "charts", "*"))
	if err != nil || len(charts) == 0 {
		t.Fatal("set BERTH_TEST_PUBLIC to what dev/scripts/public.sh prints")
	}
	g := on(t, nil)
	more := map[string][]string{
		"aws-vpc-cni": {"host-namespace", "host-path", "privileged-container"}, // it is a node's network
		"metallb":     {"host-namespace", "privileged-container"},
	}
	for _, chart := range charts {
		t.Run(filepath.Base(chart), func(t *testing.T) {
			t.Parallel()
			j := g.Judge(t.Context(), guards.Plan{Case: policy.Case{Documents: rendered(t, chart, nil)}, Guarded: true}).Judgement
			said := map[string]int{}
			for _, v := range policy.Against(j.Guardrails, policy.Ask) {
				said[v.Policy]++
				if v.Policy != "cluster-scoped" && v.Policy != "foreign-image" && !slices.Contains(more[filepath.Base(chart)], v.Policy) {
					t.Errorf("%v", v)
				}
			}
			for _, name := range more[filepath.Base(chart)] {
				if said[name] == 0 {
					t.Errorf("%s says nothing", name)
				}
			}
		})
	}
}
