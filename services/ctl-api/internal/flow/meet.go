package flow

import "github.com/berth-dev/berth/services/internal/model"

// Meeting is what becomes of a new workflow and another one of the same install.
type Meeting string

// The meetings.
const (
	MeetWaits      Meeting = "waits"      // the new one waits for what the other applies
	MeetSupersedes Meeting = "supersedes" // what the other proposes gives way
	MeetApart      Meeting = "apart"      // they change nothing in common
)

// Shared is a step of the other workflow on a resource that the new one changes,
// too.
type Shared struct {
	Resource string
	Step     model.StepState
	Change   model.ChangeState // empty before the first
}

// Open tells whether the other workflow has still to change the resource.
func (s Shared) Open() bool {
	switch s.Step {
	case model.StepSucceeded, model.StepSkipped, model.StepFailed, model.StepCancelled:
		return false
	}
	return true
}

// Meet says what becomes of a new workflow and another one, from the steps on what
// both change. approveAll: the other one needs no decision, so nothing of it waits
// long enough to give way.
func Meet(steps []Shared, approveAll bool) Meeting {
	meeting := MeetApart
	for _, s := range steps {
		switch {
		case !s.Open():
		case approveAll || s.Change == model.ChangeExecuting || s.Change == model.ChangeApproved:
			return MeetWaits
		default:
			meeting = MeetSupersedes
		}
	}
	return meeting
}
