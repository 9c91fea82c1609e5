package flow_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
)

// A failed step stops its workflow, or what does not need it goes on: one table of the
// same rows with either choice.
func TestWhatHappensAfterAFailure(t *testing.T) {
	t.Parallel()
	step := func(name string, state model.StepState, needs ...string) flow.Step {
		return flow.Step{ID: name, Name: name, Kind: flow.StepDeploy, State: state, Needs: needs}
	}
	const ok, bad, open, later, off = model.StepSucceeded, model.StepFailed, model.StepRunning, model.StepPending, model.StepSkipped
	check := func(needs ...string) flow.Step {
		return flow.Step{ID: "check", Name: "check", Kind: flow.StepCheck, State: later, Needs: needs}
	}
	accept := func(state model.StepState, c *flow.Change) flow.Step {
		return flow.Step{ID: "accept", Name: "accept", Kind: flow.StepAccept, State: state, Change: c}
	}
	atWork := change(model.ChangePreparing, func(c *flow.Change) { c.Plan = job("leased", "") })
	failedWith := func(names string) flow.Decision {
		return flow.Decision{Do: flow.DoFinishWorkflow, WorkflowState: model.WorkflowFailed, Error: names + " failed"}
	}
	start := func(id string) flow.Decision { return flow.Decision{Do: flow.DoStartStep, StepID: id} }
	busy := flow.Decision{Do: flow.DoNothing, WorkflowState: model.WorkflowRunning}
	proposed := change(model.ChangeProposed)
	waits := accept(model.StepWaiting, proposed)
	waits.WaitReason, waits.WaitOn, waits.WaitDeadline = model.WaitDecision, proposed.ID, now.Add(time.Hour)
	withPlan := step("running", open)
	withPlan.Change = atWork
	for _, tt := range []struct {
		name               string
		steps              []flow.Step
		stopped, continued flow.Decision
	}{
		{"one that needs nothing of it", []flow.Step{step("a", bad), step("b", later)}, failedWith("step a"), start("b")},
		{"one that needs what came out well", []flow.Step{step("a", bad), step("b", ok), step("c", later, "b")}, failedWith("step a"), start("c")},
		{"one that needs it", []flow.Step{step("a", bad), step("b", later, "a")}, failedWith("step a"), failedWith("step a")},
		{"one that needs it over others", []flow.Step{step("a", bad), step("b", later, "a"), step("c", later, "b")}, failedWith("step a"), failedWith("step a")},
		{"one of two needs failed", []flow.Step{step("a", bad), step("b", ok), step("c", later, "a", "b")}, failedWith("step a"), failedWith("step a")},
		{"what runs is waited for", []flow.Step{step("a", bad), withPlan}, busy, busy},
		{"one whose need still runs, too", []flow.Step{step("a", bad), withPlan, step("c", later, "running")}, busy, busy},
		{"what was skipped is no failure", []flow.Step{step("a", off), step("b", later, "a")}, start("b"), start("b")},
		{"checks look at the whole install", []flow.Step{step("a", bad), check()}, failedWith("step a"), failedWith("step a")},
		{"two failures", []flow.Step{step("a", bad), step("b", bad), step("c", later, "b")}, failedWith("steps a, b"), failedWith("steps a, b")},
		{"nothing begins without an accepted release", []flow.Step{accept(bad, nil), step("b", later)}, failedWith("step accept"), failedWith("step accept")},
		{"an acceptance that something still to come needs is waited for", []flow.Step{waits, step("a", bad), step("plugin", later, "accept")},
			flow.Decision{Do: flow.DoPutOff, StepID: "accept", ChangeID: "chg", Error: "step a failed"},
			flow.Decision{Do: flow.DoNothing, StepID: "accept", WorkflowState: model.WorkflowWaiting}},
		{"one that nothing needs any more is put off", []flow.Step{waits, step("a", bad), step("plugin", later, "accept", "a")},
			flow.Decision{Do: flow.DoPutOff, StepID: "accept", ChangeID: "chg", Error: "step a failed"},
			flow.Decision{Do: flow.DoPutOff, StepID: "accept", ChangeID: "chg", Error: "step a failed"}},
	} {
		for policy, want := range map[model.OnFailure]flow.Decision{model.FailureStops: tt.stopped, model.FailureContinues: tt.continued} {
			s := running(tt.steps...)
			s.OnFailure = policy
			if diff := cmp.Diff(want, flow.Next(s)); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", tt.name, policy, diff)
			}
		}
	}
}

func TestRetried(t *testing.T) {
	t.Parallel()
	steps := func(states ...model.StepState) (all []flow.Step) {
		for i, s := range states {
			all = append(all, flow.Step{Name: string(rune('a' + i)), State: s})
		}
		return all
	}
	const ok, bad, ended, later = model.StepSucceeded, model.StepFailed, model.StepCancelled, model.StepPending
	for _, tt := range []struct {
		name  string
		steps []flow.Step
		of    string
		want  []string
	}{
		{"one of two that failed", steps(ok, bad, bad, later), "b", []string{"b"}},
		{"all that failed", steps(ok, bad, bad, later), "", []string{"b", "c"}},
		{"a cancelled workflow goes on where it stopped", steps(ok, ended, bad, ended), "b", []string{"b", "d"}},
		{"a failed step of a cancelled workflow goes on with it", steps(ok, ended, bad, ended), "c", []string{"b", "c", "d"}},
		{"all of a cancelled workflow", steps(ok, ended, bad, ended), "", []string{"b", "c", "d"}},
	} {
		got, err := flow.Retried(tt.steps, tt.of)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
	}
	for name, tt := range map[string]struct {
		steps []flow.Step
		of    string
	}{"one that succeeded": {steps(ok, bad), "a"}, "one that was not attempted": {steps(bad, later), "b"}, "all where nothing failed": {steps(ok, later), ""}} {
		if got, err := flow.Retried(tt.steps, tt.of); !errors.Is(err, fault.ErrConflict) {
			t.Errorf("%s: %v, %v, want a conflict", name, got, err)
		}
	}
}
