package flow_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
)

func TestPlanOfScript(t *testing.T) {
	t.Parallel()
	components := []flow.PlanComponent{{Name: "api"}, {Name: "worker", Off: true}}
	needs := []string{"runner"}
	step := flow.PlannedStep{Name: "script", Kind: flow.StepScript, Action: "script/fix", Needs: needs, Reason: "asked for"}
	with := func(resource string, sandbox bool) flow.PlannedStep {
		s := step
		s.Resource, s.Sandbox = resource, sandbox
		return s
	}
	for _, tt := range []struct {
		name string
		in   flow.PlanInput
		want flow.PlannedStep
	}{
		{"it holds the sandbox, and so the whole install", flow.PlanInput{HasSandbox: true, Components: components}, with("sandbox", true)},
		{"it holds the component that it is about", flow.PlanInput{HasSandbox: true, Components: components, Component: "api"}, with("api", false)},
		{"it may be about one that is switched off", flow.PlanInput{Components: components, Component: "worker"}, with("worker", false)},
		{"without a sandbox there is nothing to hold", flow.PlanInput{Components: components}, step},
		{"checks, hooks and secrets have no part in it", flow.PlanInput{
			HasSandbox: true, Checks: []string{"up"}, Hooks: []flow.PlanHook{{Action: "a", Trigger: "pre-deploy-all-components"}}, Secrets: true, Copies: true,
		}, with("sandbox", true)},
	} {
		tt.in.Kind, tt.in.Action = flow.KindRunScript, "script/fix"
		steps, err := flow.Plan(tt.in)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		want := []flow.PlannedStep{{Name: "runner", Kind: flow.StepAwaitRunner, Reason: "scripts are run by the install's runner"}, tt.want}
		if diff := cmp.Diff(want, steps); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	_, err := flow.Plan(flow.PlanInput{Kind: flow.KindRunScript, Components: components, Component: "apii"})
	if !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("an unknown component: %v, want ErrInvalid", err)
	}
}

func TestNextOfScript(t *testing.T) {
	t.Parallel()
	hostEnded := job("failed", "uncertain")
	hostEnded.Reason = string(jobspec.ReasonHostEnded)
	for _, tt := range []struct {
		name   string
		change *flow.Change
		edit   func(*flow.State)
		want   flow.Do
	}{
		{name: "a plan is proposed, whatever was accepted before", change: change(model.ChangePreparing, func(c *flow.Change) { c.Plan = job("succeeded", "succeeded") }), want: flow.DoPropose},
		{name: "a proposal waits for a person", change: change(model.ChangeProposed), want: flow.DoWaitStep},
		{name: "it counts as a change for approve_all", change: change(model.ChangeProposed), edit: func(s *flow.State) { s.ApproveAll = true }, want: flow.DoApprove},
		{name: "it runs once it is approved", change: change(model.ChangeApproved), want: flow.DoExecute},
		{name: "it waits while something of the install changes", change: change(model.ChangeApproved), edit: func(s *flow.State) {
			s.Locks.By["res_api"] = "chg_other"
		}, want: flow.DoWaitStep},
		{name: "nobody knows whether it ran: it is not started again", change: change(model.ChangeUncertain), want: flow.DoFailStep},
		{name: "nor when the host ended", change: change(model.ChangeUncertain, func(c *flow.Change) { c.Apply = hostEnded }), want: flow.DoFailStep},
		{name: "it provably did not run: it is planned again", change: change(model.ChangeStale), want: flow.DoPlan},
		{name: "a failed one is a person's to start again", change: change(model.ChangeFailed), want: flow.DoFailStep},
	} {
		step := deploy(tt.change)
		step.Kind, step.Name, step.ResourceID = flow.StepScript, "script", "res_sandbox"
		state := running(step)
		state.Locks = flow.Locks{By: map[string]string{}, SandboxID: "res_sandbox"}
		if tt.edit != nil {
			tt.edit(&state)
		}
		if d := flow.Next(state); d.Do != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, d.Do, tt.want)
		}
	}
}

// An action cannot be looked at by a plan either: what may have run is not run again by
// itself, neither because the plan is the same nor because all is approved.
func TestActionThatMayHaveRun(t *testing.T) {
	t.Parallel()
	for state, want := range map[model.ChangeState]flow.Do{model.ChangeUncertain: flow.DoFailStep, model.ChangeStale: flow.DoPlan} {
		step := deploy(change(state))
		step.Kind, step.Name, step.ResourceID = flow.StepAction, "action/migrate", ""
		s := running(step)
		s.ApproveAll = true
		if d := flow.Next(s); d.Do != want || want == flow.DoFailStep && d.Remedy == "" {
			t.Errorf("%s: %+v, want %s", state, d, want)
		}
	}
}

// While a script holds the sandbox, a deploy waits for it, and the other way round.
func TestScriptAndDeployExcludeEachOther(t *testing.T) {
	t.Parallel()
	locks := flow.Locks{By: map[string]string{"res_sandbox": "chg_script"}, SandboxID: "res_sandbox"}
	if by := locks.Before(flow.Turn{ChangeID: "chg_deploy", Resource: "res_api", RequestedAt: time.Now()}); by != "chg_script" {
		t.Errorf("a deploy waits for %q, want the script", by)
	}
	locks.By = map[string]string{"res_api": "chg_deploy"}
	if by := locks.Before(flow.Turn{ChangeID: "chg_script", Resource: "res_sandbox", RequestedAt: time.Now()}); by != "chg_deploy" {
		t.Errorf("a script waits for %q, want the deploy", by)
	}
}
