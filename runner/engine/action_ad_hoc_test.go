package engine_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// What people see of a script besides its text is pinned with it: an apply under other
// terms is refused, and nothing runs.
func TestAdHocScriptKeepsItsTerms(t *testing.T) {
	t.Parallel()
	adHoc := func(op jobspec.Operation) *jobDir {
		j := actionJob(t, op, jobspec.ActionStep{Name: "script", InlineContents: "echo ran >> $BERTH_INSTALL_DIR/ran", NoKubeConfig: true})
		j.spec.Action.AdHoc, j.spec.TimeoutSeconds = true, 60
		j.spec.Resource = &jobspec.Resource{ID: "res_1", Kind: "sandbox", Name: "sandbox"}
		return j
	}
	plan := adHoc(jobspec.OperationPlan)
	plan.must(t)
	var summary jobspec.PlanSummary
	plan.readJSON(t, "out/plan.summary.json", &summary)
	shown := map[string]string{}
	for _, f := range summary.Objects[0].Fields {
		shown[f.Path] = f.After
	}
	if shown["timeout"] != "1m0s" || shown["holds"] != "sandbox" || shown["kubernetes_context"] != "" || shown[jobspec.ScriptField] == "" {
		t.Errorf("people see %v", shown)
	}
	for _, tt := range []struct {
		name string
		edit func(*jobspec.Spec)
		runs bool
	}{
		{"as approved", func(*jobspec.Spec) {}, true},
		{"more time", func(s *jobspec.Spec) { s.TimeoutSeconds = 3600 }, false},
		{"with the cluster", func(s *jobspec.Spec) { s.Action.Steps[0].NoKubeConfig = false }, false},
		{"holding something else", func(s *jobspec.Spec) { s.Resource.Name = "api" }, false},
		{"as an action", func(s *jobspec.Spec) { s.Action.AdHoc, s.Resource = false, nil }, false},
	} {
		j := adHoc(jobspec.OperationApply)
		tt.edit(&j.spec)
		j.write(t, "in/pinned/action.json", plan.read(t, "out/pinned/action.json"))
		r := j.run(t)
		if tt.runs && r.Outcome != jobspec.OutcomeSucceeded || !tt.runs && (r.Outcome != jobspec.OutcomeRefused || !strings.Contains(r.Error, "not what was approved")) {
			t.Errorf("%s: %+v", tt.name, r)
		}
	}
}
