package drift_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/drift"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// Only edits and what nobody explains are drift; accepted differences are listed with
// their rule, and what controllers own is counted.
func TestResult(t *testing.T) {
	t.Parallel()
	r := report(t, "k9s", "autoscaler of Kubernetes", "unknown manager", "kubectl scale").Accept([]drift.Rule{
		{Kind: "ConfigMap", Name: "k9s", Path: "data", Reason: "debugging", By: "ops@shop.test", Until: noon.Add(time.Hour)},
	}, noon)
	got := r.Result("chg_1")
	if got.Class != "human_edit" || got.Digest == "" || got.AtOnce || got.Looked != 4 || got.Change != "chg_1" {
		t.Errorf("got %+v", got)
	}
	if got.Counts["human_edit"] != 1 || got.Counts[jobspec.DriftAccepted] != 1 || got.Counts["controller"] == 0 {
		t.Errorf("counts %v", got.Counts)
	}
	var drifted []string
	for _, o := range got.Objects {
		if o.Drifted {
			drifted = append(drifted, o.Address)
		}
	}
	if len(got.Objects) != 3 || len(drifted) != 1 || !strings.HasSuffix(drifted[0], "kubectl-scale") {
		t.Errorf("objects %+v", got.Objects)
	}
	unclear := report(t, "unknown manager").Result("chg_1")
	if unclear.Class != "" || unclear.Digest != "" || len(unclear.Objects) != 1 {
		t.Errorf("what cannot be told is shown and is no drift: %+v", unclear)
	}
}

// Whatever is in a cluster, the result stays small and counts what it leaves out.
func TestResultIsBounded(t *testing.T) {
	t.Parallel()
	var r drift.Report
	for i := range 3000 {
		f := drift.Finding{Object: kube.Ref{Version: "v1", Kind: "ConfigMap", Namespace: "ns", Name: fmt.Sprintf("%s-%d", strings.Repeat("x", 200), i)}}
		for n := range 60 {
			f.Differences = append(f.Differences, drift.Difference{
				Path: fmt.Sprintf("data.%d%s", n, strings.Repeat("p", 900)), What: drift.Changed, Class: drift.HumanEdit, Want: strings.Repeat("<", 256), Have: strings.Repeat("v", 256),
				Manager: strings.Repeat("m", 128),
			})
		}
		r.Findings = append(r.Findings, f)
	}
	got := r.Result("chg_1")
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > jobspec.MaxDrift {
		t.Errorf("%d bytes", len(raw))
	}
	listed := 0
	for _, o := range got.Objects {
		listed += len(o.Differences)
	}
	if listed == 0 || listed+got.More != 3000*60 || got.Class != "human_edit" {
		t.Errorf("%d are listed, %d are not", listed, got.More)
	}
}
