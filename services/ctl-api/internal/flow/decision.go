package flow

import (
	"time"

	"github.com/berth-dev/berth/services/internal/model"
)

// Do names the one thing to do.
type Do string

// What Next can ask for.
const (
	// DoNothing: everything that could be done is; Decision.WorkflowState and
	// the wait say what the workflow row shall read.
	DoNothing        Do = "nothing"
	DoStartWorkflow  Do = "start_workflow"
	DoFinishWorkflow Do = "finish_workflow" // to WorkflowState, with Error
	DoStartStep      Do = "start_step"
	DoWaitStep       Do = "wait_step" // with Wait
	DoSucceedStep    Do = "succeed_step"
	DoFailStep       Do = "fail_step" // with Error and Remedy
	DoCancelStep     Do = "cancel_step"
	DoPlan           Do = "plan"          // a new change for the step, with its plan job; replaces the present one
	DoRunCheck       Do = "run_check"     // a job that runs the check once
	DoPropose        Do = "propose"       // the plan is there: ask for a decision
	DoNoChange       Do = "no_change"     // the plan is empty
	DoPlanned        Do = "planned"       // plan only: shown, not done
	DoApprove        Do = "approve"       // by Rule, without asking
	DoReopen         Do = "reopen"        // approvals do not count any more: proposed again, because of Error, with Wait
	DoExecute        Do = "execute"       // lock, fence, capsule, apply job
	DoDenyPlan       Do = "deny_plan"     // a policy of the vendor denies the plan, because of Error
	DoSettleChange   Do = "settle_change" // the jobs ended: the change becomes ChangeState
	DoCancelJob      Do = "cancel_job"    // ask the runner to stop JobID
	DoSkipStep       Do = "skip_step"     // nobody wants it any more, because of Error
	DoPutOff         Do = "put_off"       // the step is pending again, its change is withdrawn, because of Error
	DoLookAgain      Do = "look_again"    // the step waits on, until Wait.RetryAt at the most
)

// HandsOver tells whether somebody else does what was decided, and begins when it is
// committed.
func (d Do) HandsOver() bool {
	return d == DoPlan || d == DoExecute || d == DoRunCheck || d == DoCancelJob
}

// Wait is what a waiting row says.
type Wait struct {
	Reason   model.WaitReason
	On       string
	Deadline time.Time
	// RetryAt is when the engine looks again by itself, whatever happens until then;
	// zero for a wait that only its event or its deadline ends.
	RetryAt time.Time
}

// Decision is the one thing to do now.
type Decision struct {
	Do            Do
	StepID        string
	ChangeID      string
	JobID         string
	ChangeState   model.ChangeState   // DoSettleChange
	WorkflowState model.WorkflowState // DoNothing, DoFinishWorkflow
	Rule          model.Rule          // DoApprove
	Wait          Wait
	Error         string
	Remedy        string
	// Ended is how a workflow or step that is to fail ends when nothing went wrong
	// in it, and EndedBy who wanted that.
	Ended   model.Ended
	EndedBy string
}
