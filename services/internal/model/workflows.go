package model

// WorkflowState is the state of a workflow.
type WorkflowState string

// The states of a workflow.
const (
	WorkflowQueued    WorkflowState = "queued"
	WorkflowRunning   WorkflowState = "running"
	WorkflowWaiting   WorkflowState = "waiting" // for what its first waiting step waits for
	WorkflowSucceeded WorkflowState = "succeeded"
	WorkflowFailed    WorkflowState = "failed" // a retry of a step reopens it
	WorkflowCancelled WorkflowState = "cancelled"
)

// Finished says whether the workflow is over; a failed one goes on when a step of
// it is retried.
func (s WorkflowState) Finished() bool {
	return s == WorkflowSucceeded || s == WorkflowFailed || s == WorkflowCancelled
}

// Ended says how a failed workflow or step came to its end when nothing went wrong
// in it.
type Ended string

// The ends that are no failure.
const (
	EndedDenied  Ended = "denied"  // somebody denied a change
	EndedExpired Ended = "expired" // nobody decided on a change in time
)

// OnFailure says what a workflow does after one of its steps has failed.
type OnFailure string

// What it can do.
const (
	FailureStops     OnFailure = "stop"     // what runs finishes, nothing new begins
	FailureContinues OnFailure = "continue" // what does not need the failed step goes on
)

// StepState is the state of a step of a workflow.
type StepState string

// The states of a step. A pending step of a failed workflow was not attempted.
const (
	StepPending   StepState = "pending"
	StepRunning   StepState = "running"
	StepWaiting   StepState = "waiting" // for its WaitReason
	StepSucceeded StepState = "succeeded"
	StepSkipped   StepState = "skipped" // a preview could not plan it: see MayChange
	StepFailed    StepState = "failed"
	StepCancelled StepState = "cancelled"
)

// MayChange is an entry of steps.may_change: something that the step's templates
// read and that changes before it, so that its own plan is not the whole truth.
type MayChange struct {
	// Reads is the output, as people write it: "greeting.text".
	Reads string `json:"reads"`
	// Of is what makes it: a component, "sandbox" or "action NAME".
	Of string `json:"of"`
	// Absent: it is not there yet, so nothing was planned.
	Absent bool `json:"absent,omitempty"`
}

// ChangeState is the state of a change.
type ChangeState string

// The states of a change.
const (
	ChangePreparing  ChangeState = "preparing"  // artifact synced, plan being made
	ChangeProposed   ChangeState = "proposed"   // waits for a decision
	ChangeApproved   ChangeState = "approved"   // waits for its turn
	ChangeExecuting  ChangeState = "executing"  // holds the resource's lock
	ChangeApplied    ChangeState = "applied"    // done
	ChangeNoChange   ChangeState = "no_change"  // nothing to do
	ChangePlanned    ChangeState = "planned"    // its workflow only shows plans
	ChangeDenied     ChangeState = "denied"     // decided against
	ChangeSuperseded ChangeState = "superseded" // a newer change replaced it
	ChangeWithdrawn  ChangeState = "withdrawn"  // its workflow was cancelled, or cannot go on with it
	ChangeStale      ChangeState = "stale"      // the live state moved after the plan
	ChangeRefused    ChangeState = "refused"    // the runner would not do it
	ChangeFailed     ChangeState = "failed"     // tried and failed
	ChangeUncertain  ChangeState = "uncertain"  // an effect may have happened
)

// Open says whether the change may still be decided on or applied.
func (s ChangeState) Open() bool {
	switch s {
	case ChangePreparing, ChangeProposed, ChangeApproved, ChangeExecuting:
		return true
	}
	return false
}

// WaitReason says why a step, and with it its workflow, waits.
type WaitReason string

// The reasons to wait.
const (
	WaitStack    WaitReason = "stack"          // the customer applies the stack
	WaitRunner   WaitReason = "runner"         // a machine enrols
	WaitDecision WaitReason = "decision"       // a person answers a proposal
	WaitLock     WaitReason = "lock"           // another change holds the resource
	WaitSecret   WaitReason = "secret_missing" // the customer gives a secret its value
	WaitRelease  WaitReason = "release"        // what was approved waits for the release to be accepted
	WaitFreeze   WaitReason = "freeze"         // a freeze window is in force
	WaitPaused   WaitReason = "paused_by_vendor"
	WaitRoleOff  WaitReason = "role_off" // the customer switches on the role of its action

	WaitRoleUnknown WaitReason = "role_unknown" // nobody knows the role of its action
	WaitConsent     WaitReason = "consent"      // the customer agrees to the change
	WaitHealth      WaitReason = "health"       // what was deployed is healthy, and stays so
)

// ConsentState is the customer's word on a change, as the runner tells it.
type ConsentState string

// The states of a consent.
const (
	ConsentNeeded ConsentState = "needed" // the runner starts no apply before it is given
	ConsentGiven  ConsentState = "given"
	ConsentDenied ConsentState = "denied"
)

// ChangeKind says what a change is about.
type ChangeKind string

// The kinds of changes.
const (
	ChangeDeploy       ChangeKind = "deploy"
	ChangeTeardown     ChangeKind = "teardown"
	ChangeScript       ChangeKind = "script"        // an action that mutates
	ChangeAccept       ChangeKind = "accept"        // the runner accepts the scripts of a release
	ChangeForget       ChangeKind = "forget"        // the runner accepts no script any more
	ChangeSecretSync   ChangeKind = "secret_sync"   // copies of secrets in the install's cluster
	ChangeBreakGlass   ChangeKind = "break_glass"   // not yet
	ChangeRunnerUpdate ChangeKind = "runner_update" // the runner runs another version of itself
)

// Answer is what was decided about a proposal.
type Answer string

// The answers.
const (
	Approve   Answer = "approve"
	Deny      Answer = "deny"
	PlanAgain Answer = "plan_again"
)

// DeniedThen says what becomes of a step whose change was denied. Empty: it fails,
// and nothing new begins in its workflow.
type DeniedThen string

// What else can become of it.
const (
	ThenSkip           DeniedThen = "skip"            // what needs it goes on
	ThenSkipDependents DeniedThen = "skip_dependents" // what needs it is skipped as well
)

// Rule says why a proposal was answered.
type Rule string

// The rules.
const (
	RulePerson     Rule = "person"      // somebody was asked
	RuleApproveAll Rule = "approve_all" // a standing answer of the workflow or the install
	RuleKept       Rule = "kept"        // the same effect was approved before
	RuleNoChange   Rule = "no_change"   // the plan is empty
	RuleReadOnly   Rule = "read_only"   // it mutates nothing, or only removes permission
)
