package workflow

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
	// LockedBy names, per resource, the change that holds it, whatever workflow
	// it is of.
	LockedBy map[string]string
	// SandboxID is the resource that excludes all others; empty without one.
	SandboxID string
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
	Attempt      int // changes made for this step, or runs
	MaxRetries   int
	Change       *Change // nil before the first
	Run          *Job    // of a check: the job that runs it
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
