package why

import "time"

// Code is why something waits, or does not stand where it should, for programs.
type Code string

// The codes. Their set is closed: the contract lists them, and a test compares.
const (
	// What a workflow, step, change, job or run waits for.
	CodeDecision       Code = "decision"         // a person answers a proposal
	CodeRelease        Code = "release"          // the release is accepted
	CodeLock           Code = "lock"             // another change holds the resource, or is before it in the queue
	CodeFreeze         Code = "freeze"           // approved, and a freeze is in force
	CodePaused         Code = "paused_by_vendor" // approved, and the vendor paused the install
	CodeStack          Code = "stack"            // the customer applies the stack
	CodeEnrolment      Code = "enrolment"        // a machine enrols as the runner
	CodeSecret         Code = "secret_missing"   // the customer gives a secret its value
	CodeNeeds          Code = "needs"            // other steps of the workflow come first
	CodeSwitch         Code = "customer_switch"  // the customer's switch keeps the runner from beginning
	CodeRoleOff        Code = "role_off"         // approved, and the customer switches the role of its action on
	CodeRoleUnknown    Code = "role_unknown"     // approved, and nobody knows the role of its action
	CodeConsent        Code = "consent"          // approved, and the customer has to agree to it
	CodeHealth         Code = "health"           // deployed, and not healthy for long enough yet
	CodeRunnerOffline  Code = "runner_offline"   // the runner is not heard of
	CodeRunnerDisputed Code = "runner_disputed"  // two processes hold the runner's key
	CodeRunnerProblem  Code = "runner_problem"   // the runner says that it cannot work
	CodeRunnerQueue    Code = "runner_queue"     // the runner is about to take it
	CodeAtWork         Code = "at_work"          // the runner is at it
	CodeControlPlane   Code = "control_plane"    // ctl-api is about to look at it
	// What ended badly.
	CodeFailed     Code = "failed"
	CodeDenied     Code = "denied"     // somebody said no, or nobody decided in time
	CodeSuperseded Code = "superseded" // it gave way to a newer request
	CodeRollback   Code = "rollback"   // an earlier release can be brought back
	// What is so while nothing is at work.
	CodeNotProvisioned Code = "not_provisioned"
	CodeDeprovisioned  Code = "deprovisioned"
	CodeNotLive        Code = "not_live"    // its provision did not succeed
	CodeNotRemoved     Code = "not_removed" // its deprovision did not succeed
	CodeBehind         Code = "behind"      // a release, inputs or toggles are not deployed
	CodeNotAccepted    Code = "scripts_not_accepted"
	CodeRotated        Code = "secret_rotated"
	CodeAlarm          Code = "alarm"
	CodeAlert          Code = "alert"
	CodeNeedsAttention Code = "needs_attention" // a remediation did not help
)

// Codes are all codes.
var Codes = []Code{
	CodeDecision, CodeRelease, CodeLock, CodeFreeze, CodePaused, CodeStack, CodeEnrolment, CodeSecret, CodeNeeds, CodeSwitch, CodeRoleOff, CodeRoleUnknown, CodeConsent, CodeHealth, CodeRunnerOffline, CodeRunnerDisputed,
	CodeRunnerProblem, CodeRunnerQueue, CodeAtWork, CodeControlPlane, CodeFailed, CodeDenied, CodeSuperseded, CodeRollback, CodeNotProvisioned, CodeDeprovisioned,
	CodeNotLive, CodeNotRemoved, CodeBehind, CodeNotAccepted, CodeRotated, CodeAlarm, CodeAlert, CodeNeedsAttention,
}

// Who can end a wait, for programs.
type Who string

// Who there is. The customer's machine is the runner; the customer is who owns it.
const (
	Approver      Who = "approver"
	Operator      Who = "operator"
	Customer      Who = "customer"
	TheRunner     Who = "runner"
	ControlPlane  Who = "control_plane"
	AnotherChange Who = "another_change"
	Nobody        Who = "nobody"
)

// Whos are all of them.
var Whos = []Who{Approver, Operator, Customer, TheRunner, ControlPlane, AnotherChange, Nobody}

// Waker is what makes the control plane look again, next to deadline and retry.
type Waker string

// The wakers. Something that waits has one, or a deadline.
const (
	WakeDecision Waker = "decision"     // the answer of a person
	WakeRequest  Waker = "request"      // a new request of a person: a retry, a deploy
	WakeRunner   Waker = "runner"       // the runner claims or reports
	WakeCustomer Waker = "customer"     // the customer's stack, secret or switch
	WakeChange   Waker = "other_change" // the end of another change
	WakeStep     Waker = "other_step"   // the end of another step
	WakeQueue    Waker = "wakeup"       // a wake-up in the queue, and the sweep
)

// Wakers are all of them.
var Wakers = []Waker{WakeDecision, WakeRequest, WakeRunner, WakeCustomer, WakeChange, WakeStep, WakeQueue}

// Turn is a change that holds a resource, or waits for it.
type Turn struct {
	Change, Step, Workflow, WorkflowKind, By string
	// Since is when it was granted the resource or, of one that waits, approved.
	Since time.Time
	// WaitsFor is, of one that waits, the change before it.
	WaitsFor string
}

// facts are code, who and waker of one reason.
type facts struct {
	code Code
	who  Who
	wake Waker
}

func (r *Reason) is(f facts) { r.Code, r.Who, r.WokenBy = f.code, f.who, f.wake }

// Rank orders reasons: what only waits for something else comes after that.
func (r Reason) Rank() int {
	if r.Code == CodeLock || r.Code == CodeNeeds {
		return 1
	}
	return 0
}
