package flow_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/model"
)

// The actions of a switch run one after the other by index, behind the acceptance; those
// of a role that went off do not wait for it.
func TestPlanOfARoleSwitch(t *testing.T) {
	t.Parallel()
	hooks := []flow.PlanHook{
		{Action: "last", Trigger: "role-enabled", Index: 2}, {Action: "first", Trigger: "role-enabled", Index: 1},
		{Action: "tidy", Trigger: "role-disabled"}, {Action: "other", Trigger: "post-provision"},
	}
	plan := func(trigger string) (lines []string) {
		steps, err := flow.Plan(flow.PlanInput{Kind: flow.KindRoleSwitch, Switch: trigger, Switched: "acme-repair", Hooks: hooks, Roles: map[string]string{"first": "repair", "tidy": "repair"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			lines = append(lines, fmt.Sprintf("%s %s needs %v role %q: %s", s.Kind, s.Name, s.Needs, s.Role, s.Reason))
		}
		return lines
	}
	want := map[string][]string{
		"role-enabled": {
			`await_runner runner needs [] role "": actions are run by the install's runner`,
			`accept release needs [runner] role "": a runner runs only scripts of a release that was accepted`,
			`action role-enabled/first needs [runner release] role "repair": trigger role-enabled of role acme-repair`,
			`action role-enabled/last needs [role-enabled/first] role "": trigger role-enabled of role acme-repair`,
		},
		"role-disabled": {
			`await_runner runner needs [] role "": actions are run by the install's runner`,
			`accept release needs [runner] role "": a runner runs only scripts of a release that was accepted`,
			`action role-disabled/tidy needs [runner release] role "": trigger role-disabled of role acme-repair`,
		},
	}
	for trigger, lines := range want {
		if diff := cmp.Diff(lines, plan(trigger)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", trigger, diff)
		}
	}
}

// An action by hand that needs a role comes after the acceptance, by which the runner
// knows that it does.
func TestPlanOfAnActionWithARole(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]string{"": "[runner]", "repair": "[runner release]"} {
		steps, err := flow.Plan(flow.PlanInput{Kind: flow.KindActionRun, Action: "a", Roles: map[string]string{"a": role}})
		if err != nil {
			t.Fatal(err)
		}
		last := steps[len(steps)-1]
		if got := fmt.Sprint(last.Needs); got != want || last.Role != role {
			t.Errorf("role %q: needs %s with role %q", role, got, last.Role)
		}
	}
}

// An approved change whose role is off waits, looks again, and becomes stale at the end.
func TestChangeWaitsForItsRole(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	off := &flow.Hold{Reason: model.WaitRoleOff, On: "acme-repair", Text: "it is off"}
	paused := &flow.Hold{Reason: model.WaitPaused, On: "ada", Text: "paused"}
	waiting := func(deadline, retry time.Time) flow.Step {
		return flow.Step{State: model.StepWaiting, WaitReason: model.WaitRoleOff, WaitOn: "acme-repair", WaitDeadline: deadline, WaitRetryAt: retry}
	}
	for _, tc := range []struct {
		name    string
		step    flow.Step
		install *flow.Hold
		hold    *flow.Hold
		want    flow.Do
		reason  model.WaitReason
	}{
		{"off", flow.Step{State: model.StepRunning}, nil, off, flow.DoWaitStep, model.WaitRoleOff},
		{"waits already", waiting(now.Add(time.Hour), now.Add(time.Minute)), nil, off, flow.DoNothing, ""},
		{"looks again", waiting(now.Add(time.Hour), now), nil, off, flow.DoLookAgain, model.WaitRoleOff},
		{"for too long", waiting(now, now), nil, off, flow.DoSettleChange, ""},
		{"switched on", waiting(now.Add(time.Hour), now.Add(time.Minute)), nil, nil, flow.DoExecute, ""},
		{"the install is paused too", flow.Step{State: model.StepRunning}, paused, off, flow.DoWaitStep, model.WaitPaused},
	} {
		tc.step.ID, tc.step.Name, tc.step.Kind, tc.step.Hold = "s", "action/a", flow.StepAction, tc.hold
		tc.step.Change = &flow.Change{ID: "c", State: model.ChangeApproved, EffectDigest: "e", ApprovedDigest: "e"}
		d := flow.Next(flow.State{Now: now, WorkflowState: model.WorkflowRunning, Steps: []flow.Step{tc.step}, Hold: tc.install})
		if d.Do != tc.want || d.Wait.Reason != tc.reason {
			t.Errorf("%s: %s for %q, want %s for %q", tc.name, d.Do, d.Wait.Reason, tc.want, tc.reason)
		}
	}
}
