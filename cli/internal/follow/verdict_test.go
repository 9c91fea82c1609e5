package follow_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	proposed := ctlapi.Step{State: ctlapi.StepStateWaiting, Change: &ctlapi.ChangeSummary{ID: "chg_7", State: ctlapi.ChangeStateProposed}}
	planned := func(noChange bool) ctlapi.Step {
		return ctlapi.Step{State: ctlapi.StepStateSucceeded, Change: &ctlapi.ChangeSummary{State: ctlapi.ChangeStateSuperseded, Counts: &ctlapi.PlanCounts{NoChange: noChange, Create: 1}}}
	}
	failed := ctlapi.Step{ID: "stp_1", Name: "sandbox", State: ctlapi.StepStateFailed, Error: ptr("exit\nstatus 1"), Remedy: ptr("fix it")}
	why := []string{"sandbox of acme failed:", "  exit status 1", "  try: fix it, then berth retry acme"}
	refused := failed
	refused.Change, refused.Remedy = &ctlapi.ChangeSummary{State: ctlapi.ChangeStateRefused}, nil
	whyRefused := []string{why[0], why[1], "  try: fix the cause, then berth retry acme"}
	resource := &ctlapi.ResourceRef{Name: "api"}
	placed := ctlapi.Step{ID: "stp_2", Name: "component/api", Resource: resource, State: ctlapi.StepStateFailed,
		Error:  ptr("terraform apply of component api: terraform_data.file: local-exec (main.tf:33): exit status 3"),
		Remedy: ptr("fix the cause, then retry the step, which makes a new plan")}
	whyPlaced := []string{
		"component/api of acme failed at main.tf:33:", "  " + *placed.Error, "  log: berth logs acme/api",
		"  try: fix the cause, then retry the step, which makes a new plan: berth retry acme/api",
	}
	check := ctlapi.Step{Name: "check/up", Action: ptr("up"), State: ctlapi.StepStateFailed, Error: ptr(`on up.sh line 3: no answer`)}
	whyChecked := []string{"check/up of acme failed at up.sh:3:", "  on up.sh line 3: no answer", "  log: berth logs acme/up", "  try: fix the cause, then berth retry acme/up"}
	ofAPI, other := proposed, proposed
	ofAPI.Change = &ctlapi.ChangeSummary{ID: "chg_8", State: ctlapi.ChangeStateProposed, Resource: resource}
	other.Change = &ctlapi.ChangeSummary{ID: "chg_9", State: ctlapi.ChangeStateProposed}
	superseded := failed
	superseded.Error, superseded.Change = ptr("superseded by chg_2 of the newer deploy wfl_2, which bob requested"), &ctlapi.ChangeSummary{State: ctlapi.ChangeStateSuperseded}
	denied := superseded
	denied.Error, denied.Change = ptr("denied by ada: not before Monday"), &ctlapi.ChangeSummary{State: ctlapi.ChangeStateDenied}
	whyDenied := []string{"sandbox of acme was not done: denied by ada: not before Monday", "  to plan and ask again: berth retry acme"}
	applied := &ctlapi.ChangeSummary{State: ctlapi.ChangeStateApplied}
	stopped := []ctlapi.Step{
		{Name: "runner", State: ctlapi.StepStateSucceeded},
		{Name: "sandbox", State: ctlapi.StepStateSucceeded, Resource: resource, Change: applied},
		{Name: "component/api", State: ctlapi.StepStateCancelled, Resource: resource, Change: applied},
		{Name: "component/web", State: ctlapi.StepStateCancelled, Resource: resource},
	}
	interrupted := []ctlapi.Step{{Name: "component/api", State: ctlapi.StepStateCancelled, Resource: resource, Change: &ctlapi.ChangeSummary{State: ctlapi.ChangeStateFailed},
		Jobs: []ctlapi.Job{{Operation: "plan", StartedAt: ptr(time.Now())}, {Operation: "apply", StartedAt: ptr(time.Now())}}}}
	blind := ctlapi.Step{State: ctlapi.StepStateSkipped, MayChange: []ctlapi.MayChange{{Reads: "greeting.text", Of: "greeting", Absent: true}}}
	for _, tc := range []struct {
		name  string
		w     ctlapi.Workflow
		want  follow.Verdict
		lines []string
	}{
		{"succeeded", ctlapi.Workflow{State: ctlapi.WorkflowStateSucceeded}, follow.Done, nil},
		{"failed", ctlapi.Workflow{State: ctlapi.WorkflowStateFailed, Steps: []ctlapi.Step{failed}}, follow.Failed, why},
		{"refused by the runner", ctlapi.Workflow{State: ctlapi.WorkflowStateFailed, Steps: []ctlapi.Step{refused}}, follow.Refused, whyRefused},
		{"cancelled", ctlapi.Workflow{State: ctlapi.WorkflowStateCancelled}, follow.Failed, []string{"cancelled; nothing was applied"}},
		{"cancelled half-way", ctlapi.Workflow{State: ctlapi.WorkflowStateCancelled, Steps: stopped}, follow.Failed, []string{
			"cancelled; applied before that, and still there: sandbox, component/api", "not done: component/web",
		}},
		{"cancelled in the middle of an apply", ctlapi.Workflow{State: ctlapi.WorkflowStateCancelled, Steps: interrupted}, follow.Failed, []string{
			"cancelled", "stopped while being applied, so part of it may be there: component/api",
		}},
		{"cancelled there, after others were applied", ctlapi.Workflow{State: ctlapi.WorkflowStateCancelled, Steps: append(stopped[:2:2], interrupted...)}, follow.Failed, []string{
			"cancelled; applied before that, and still there: sandbox", "stopped while being applied, so part of it may be there: component/api",
		}},
		{"superseded, so there is nothing to advise", ctlapi.Workflow{State: ctlapi.WorkflowStateFailed, Steps: []ctlapi.Step{superseded}}, follow.Failed,
			[]string{"sandbox of acme was not done: superseded by chg_2 of the newer deploy wfl_2, which bob requested"}},
		{"denied, so there is no log to read", ctlapi.Workflow{State: ctlapi.WorkflowStateFailed, Steps: []ctlapi.Step{denied}}, follow.Failed, whyDenied},
		{"denied, and something else failed", ctlapi.Workflow{State: ctlapi.WorkflowStateFailed, Steps: []ctlapi.Step{denied, failed}}, follow.Failed, append(whyDenied[:2:2], why...)},
		{"a plan that was cancelled", ctlapi.Workflow{State: ctlapi.WorkflowStateCancelled, PlanOnly: true, Steps: []ctlapi.Step{planned(false)}}, follow.Failed, nil},
		{"waits for a decision", ctlapi.Workflow{State: ctlapi.WorkflowStateWaiting, Steps: []ctlapi.Step{proposed}}, follow.Waits, []string{"berth approve acme"}},
		{"several wait, of which one has a name", ctlapi.Workflow{State: ctlapi.WorkflowStateWaiting, Steps: []ctlapi.Step{ofAPI, other}}, follow.Waits,
			[]string{"berth approve acme/api", "berth approve chg_9"}},
		{"failed, in a file that is known", ctlapi.Workflow{State: ctlapi.WorkflowStateFailed, Steps: []ctlapi.Step{placed}}, follow.Failed, whyPlaced},
		{"a check failed", ctlapi.Workflow{State: ctlapi.WorkflowStateFailed, Steps: []ctlapi.Step{check}}, follow.Failed, whyChecked},
		{"plan with changes", ctlapi.Workflow{State: ctlapi.WorkflowStateSucceeded, PlanOnly: true, Steps: []ctlapi.Step{planned(true), planned(false)}}, follow.Changes, nil},
		{"the same, not only planned", ctlapi.Workflow{State: ctlapi.WorkflowStateSucceeded, Steps: []ctlapi.Step{planned(false)}}, follow.Done, nil},
		{"plan without", ctlapi.Workflow{State: ctlapi.WorkflowStateSucceeded, PlanOnly: true, Steps: []ctlapi.Step{planned(true)}}, follow.Done, []string{"nothing to do"}},
		{"plan of what reads something that changes", ctlapi.Workflow{State: ctlapi.WorkflowStateSucceeded, PlanOnly: true, Steps: []ctlapi.Step{blind}}, follow.Changes, nil},
		{"plan that failed", ctlapi.Workflow{State: ctlapi.WorkflowStateFailed, PlanOnly: true, Steps: []ctlapi.Step{planned(false), failed}}, follow.Failed, why},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.w.Install.Name = "acme"
			got, lines := follow.Judge(tc.w)
			if got != tc.want {
				t.Errorf("verdict %d, want %d", got, tc.want)
			}
			if diff := cmp.Diff(tc.lines, lines); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestToWatch(t *testing.T) {
	t.Parallel()
	w := ctlapi.Workflow{ID: "wfl_1", Install: ctlapi.Ref{Name: "acme"}}
	if got := follow.ToWatch(w); got != "acme" {
		t.Errorf("the only one: %q", got)
	}
	w.Others = []ctlapi.OtherWorkflow{{ID: "wfl_2"}}
	if got := follow.ToWatch(w); got != "wfl_1" {
		t.Errorf("one of two: %q", got)
	}
}
