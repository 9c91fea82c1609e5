package flow

import "time"

// The states of a workflow.
const (
	WorkflowQueued    = "queued"
	WorkflowRunning   = "running"
	WorkflowWaiting   = "waiting"
	WorkflowSucceeded = "succeeded"
	WorkflowFailed    = "failed"
	WorkflowCancelled = "cancelled"
)

// The states of a step. A pending step of a failed workflow was not attempted.
const (
	StepPending   = "pending"
	StepRunning   = "running"
	StepWaiting   = "waiting"
	StepSucceeded = "succeeded"
	StepSkipped   = "skipped"
	StepFailed    = "failed"
	StepCancelled = "cancelled"
)

// The states of a change.
const (
	ChangePreparing  = "preparing"  // artifact synced, plan being made
	ChangeProposed   = "proposed"   // waits for a decision
	ChangeApproved   = "approved"   // waits for its turn
	ChangeExecuting  = "executing"  // holds the resource's lock
	ChangeApplied    = "applied"    // done
	ChangeNoChange   = "no_change"  // nothing to do
	ChangeDenied     = "denied"     // decided against
	ChangeSuperseded = "superseded" // another one took its place
	ChangeStale      = "stale"      // the live state moved after the plan
	ChangeRefused    = "refused"    // the runner would not do it
	ChangeFailed     = "failed"     // tried and failed
	ChangeUncertain  = "uncertain"  // an effect may have happened
)

// The states of a runner job.
const (
	JobQueued    = "queued"
	JobLeased    = "leased"
	JobSucceeded = "succeeded"
	JobFailed    = "failed"
	JobRefused   = "refused"
	JobCancelled = "cancelled"
)

// Why a step waits.
const (
	WaitStack    = "stack"    // the customer applies the stack
	WaitRunner   = "runner"   // a machine enrols
	WaitDecision = "decision" // a person answers a proposal
	WaitLock     = "lock"     // another change holds the resource
	WaitRelease  = "release"  // what was approved waits for the release to be accepted
)

// How long a step waits.
const (
	// ApprovalTime is how long a proposal waits for its decision.
	ApprovalTime = 30 * 24 * time.Hour
	// StackTime is how long a workflow waits for the customer to apply the stack.
	StackTime = 24 * time.Hour
	// RunnerTime is how long it then waits for the runner to come.
	RunnerTime = time.Hour
)

// Finished says whether a workflow of this state is over; a failed one goes on
// when a step of it is retried.
func Finished(workflow string) bool {
	return workflow == WorkflowSucceeded || workflow == WorkflowFailed || workflow == WorkflowCancelled
}

// ChangeOpen says whether a change of this state may still be decided on or
// applied.
func ChangeOpen(change string) bool {
	switch change {
	case ChangePreparing, ChangeProposed, ChangeApproved, ChangeExecuting:
		return true
	}
	return false
}

// State is what Next looks at: the rows of one workflow and of what it touches.
type State struct {
	Now             time.Time
	WorkflowState   string
	PlanOnly        bool
	ApproveAll      bool // of the workflow or of the install
	CancelRequested bool
	Steps           []Step // by index
	// Stack and Runner are those of the install.
	StackActive    bool
	StackDeadline  time.Time
	RunnerActive   bool // enrolled: its keys are known
	RunnerDeadline time.Time
	RunnerID       string
	// NoMachine: nobody has enrolled as the runner, so no order can be made.
	NoMachine bool
	// Locks are those of the install's resources.
	Locks Locks
}

// Step is a row of steps, with the change and the check run it is at.
type Step struct {
	ID         string
	Name       string
	Kind       StepKind
	ResourceID string
	Needs      []string
	State      string
	WaitReason string
	WaitOn     string
	// WaitDeadline is when the wait ends in vain.
	WaitDeadline time.Time
	// MaxRetries is how often a failed change is planned again without being
	// asked. A check is never run again by itself.
	MaxRetries int
	Change     *Change // nil before the first
	Run        *Job    // of a check: the job that runs it
	// Uncertain and Stale count the step's changes that ended so since a person
	// last asked for a retry.
	Uncertain int
	Stale     int
	Failed    int
}

// Change is a row of changes, with its jobs.
type Change struct {
	ID       string
	State    string
	ReadOnly bool // mutates nothing of the install, or only takes leave away: needs no decision and no lock
	Plan     *Job
	Apply    *Job
	// EffectDigest is of the plan; ApprovedDigest is what a person approved, of
	// this change or of the one that it replaces.
	EffectDigest   string
	ApprovedDigest string
	// Deadline is when a proposal expires.
	Deadline time.Time
	Error    string
	// Remedy is what the runner or its engine advise.
	Remedy string
}

// Job is a row of runner_jobs.
type Job struct {
	ID              string
	State           string
	Outcome         string // jobspec.Outcome, once ended
	NoChange        bool
	Error           string
	Remedy          string
	CancelRequested bool
}

// ended says whether the job will not be worked on any more.
func (j *Job) ended() bool {
	return j != nil && j.State != JobQueued && j.State != JobLeased
}
