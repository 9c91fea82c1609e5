package flow_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/model"
)

func TestTheNewerRequestWins(t *testing.T) {
	t.Parallel()
	rival := func(state model.ChangeState, after time.Duration) flow.Rival {
		return flow.Rival{ChangeID: "chg", State: state, RequestedAt: now.Add(after)}
	}
	for _, tt := range []struct {
		name     string
		noChange bool
		rivals   []flow.Rival
		by       int
		yield    []int
	}{
		{name: "alone", by: -1},
		{name: "an older proposal gives way", rivals: []flow.Rival{rival("proposed", -time.Minute)}, by: -1, yield: []int{0}},
		{name: "a plan that came late gives way to the newer request's proposal", rivals: []flow.Rival{rival("proposed", time.Minute)}, by: 0},
		{name: "and to what was made of that", rivals: []flow.Rival{rival("applied", time.Minute)}, by: 0},
		{name: "the newest one is named", rivals: []flow.Rival{rival("applied", time.Minute), rival("proposed", time.Hour), rival("proposed", time.Second)}, by: 1},
		{name: "between two, it takes the place of none", rivals: []flow.Rival{rival("proposed", -time.Minute), rival("approved", time.Minute)}, by: 1},
		{name: "what was approved of an older one stands", rivals: []flow.Rival{rival("approved", -time.Minute)}, by: -1},
		{name: "an empty plan asks nobody, so a newer proposal is not in its way", noChange: true, rivals: []flow.Rival{rival("proposed", time.Minute)}, by: -1},
		{name: "an older proposal would undo what the newer request found as it wants it", noChange: true, rivals: []flow.Rival{rival("proposed", -time.Minute)}, by: -1, yield: []int{0}},
		{name: "but it does not land on what a newer request has brought", noChange: true, rivals: []flow.Rival{rival("applied", time.Minute)}, by: 0},
		{name: "of the same moment, the plan that came later wins", rivals: []flow.Rival{rival("proposed", 0)}, by: -1, yield: []int{0}},
	} {
		by, yield := flow.Contest{RequestedAt: now, NoChange: tt.noChange, Rivals: tt.rivals}.Settle()
		if by != tt.by || !cmp.Equal(yield, tt.yield) {
			t.Errorf("%s: by %d, yield %v; want %d, %v", tt.name, by, yield, tt.by, tt.yield)
		}
	}
}

func TestMeet(t *testing.T) {
	t.Parallel()
	shared := func(step model.StepState, change model.ChangeState) flow.Shared {
		return flow.Shared{Resource: "api", Step: step, Change: change}
	}
	for _, tt := range []struct {
		name       string
		steps      []flow.Shared
		approveAll bool
		want       flow.Meeting
	}{
		{"nothing in common", nil, false, flow.MeetApart},
		{"what both change is done", []flow.Shared{shared("succeeded", "applied")}, false, flow.MeetApart},
		{"a proposal gives way", []flow.Shared{shared("waiting", "proposed")}, false, flow.MeetSupersedes},
		{"so does what is not planned yet", []flow.Shared{shared("pending", "")}, false, flow.MeetSupersedes},
		{"what runs is waited for", []flow.Shared{shared("waiting", "proposed"), shared("running", "executing")}, false, flow.MeetWaits},
		{"and what was approved", []flow.Shared{shared("waiting", "approved")}, false, flow.MeetWaits},
		{"and all of one that was approved beforehand", []flow.Shared{shared("running", "preparing")}, true, flow.MeetWaits},
	} {
		if got := flow.Meet(tt.steps, tt.approveAll); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
