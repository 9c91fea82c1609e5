package follow_test

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// A step of 2 s that somebody left waiting for an hour took 2 s.
func TestWaitingForAPersonIsNoWork(t *testing.T) {
	t.Parallel()
	change := func(state ctlapi.ChangeState, proposed, decided *time.Time) *ctlapi.ChangeSummary {
		return &ctlapi.ChangeSummary{State: state, Counts: &ctlapi.PlanCounts{Update: 2}, ProposedAt: proposed, DecidedAt: decided}
	}
	began := ago(time.Hour)
	after := func(d time.Duration) *time.Time { return new(began.Add(d)) }
	for _, tc := range []struct {
		name string
		step ctlapi.Step
		want string
	}{
		{"it waits", ctlapi.Step{State: ctlapi.StepStateWaiting, Wait: &ctlapi.Waiting{Reason: "decision"}, Change: change(ctlapi.ChangeStateProposed, after(2*time.Second), nil)},
			"2.0 s  waits: decision, for 59 min"},
		{"approved, and its release is not accepted", ctlapi.Step{State: ctlapi.StepStateWaiting, Wait: &ctlapi.Waiting{Reason: "release"},
			Change: change(ctlapi.ChangeStateApproved, after(2*time.Second), after(time.Minute))}, "2.0 s  waits: release, for 59 min"},
		{"approved, and another change is in the way", ctlapi.Step{State: ctlapi.StepStateWaiting, Wait: &ctlapi.Waiting{Reason: "lock"},
			Change: change(ctlapi.ChangeStateApproved, after(0), after(59*time.Minute+50*time.Second))}, "10 s  waits: lock, for 59 min"},
		{"approved, and applied now", ctlapi.Step{State: ctlapi.StepStateRunning, Change: change(ctlapi.ChangeStateExecuting, after(2*time.Second), after(59*time.Minute))},
			"62 s  executing"},
		{"applied", ctlapi.Step{State: ctlapi.StepStateSucceeded, FinishedAt: after(50 * time.Minute),
			Change: change(ctlapi.ChangeStateApplied, after(2*time.Second), after(49*time.Minute+55*time.Second))}, "7.0 s  2 to update"},
		{"it failed after the approval", ctlapi.Step{State: ctlapi.StepStateFailed, FinishedAt: after(30 * time.Minute), Error: ptr("exit status 1"),
			Change: change(ctlapi.ChangeStateFailed, after(time.Second), after(29*time.Minute))}, "61 s  exit status 1"},
		{"nobody decided, and something newer took its place", ctlapi.Step{State: ctlapi.StepStateFailed, FinishedAt: after(30 * time.Minute), Error: ptr("superseded"),
			Change: change(ctlapi.ChangeStateSuperseded, after(time.Second), nil)}, "1.0 s  superseded"},
		{"nobody was asked", ctlapi.Step{State: ctlapi.StepStateSucceeded, FinishedAt: after(5 * time.Second), Change: change(ctlapi.ChangeStateApplied, nil, nil)}, "5.0 s  2 to update"},
		{"it waits for a machine", ctlapi.Step{State: ctlapi.StepStateWaiting, Wait: &ctlapi.Waiting{Reason: "runner"}}, "60 min  waits: runner"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.step.Name, tc.step.StartedAt = "web", began
			lines := follow.Tree(ctlapi.Workflow{Steps: []ctlapi.Step{tc.step}}, now, false)
			if _, got, _ := strings.Cut(lines[1], "web  "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
