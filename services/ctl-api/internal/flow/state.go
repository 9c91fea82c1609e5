package flow

import (
	"time"

	"github.com/berth-dev/berth/services/internal/model"
)

// How long a step waits.
const (
	// ApprovalTime is how long a proposal waits for its decision, unless its install
	// says otherwise.
	ApprovalTime = 30 * 24 * time.Hour
	// PauseTime is how long an approved change waits in an install that the vendor
	// paused; then its plan has become too old and is made again.
	PauseTime = 30 * 24 * time.Hour
	// SecretTime is how long a step waits for a value of a secret.
	SecretTime = 30 * 24 * time.Hour
	// StackTime is how long a workflow waits for the customer to apply the stack.
	StackTime = 24 * time.Hour
	// RunnerTime is how long it then waits for the runner to come.
	RunnerTime = time.Hour
)

// ApprovalDeadline is when a change that is proposed now expires, in an install
// whose changes wait so many hours; 0 is ApprovalTime.
func ApprovalDeadline(now time.Time, hours int) time.Time {
	if hours <= 0 {
		return now.Add(ApprovalTime)
	}
	return now.Add(time.Duration(hours) * time.Hour)
}

// State is what Next looks at: the rows of one workflow and of what it touches.
type State struct {
	Now             time.Time
	WorkflowState   model.WorkflowState
	PlanOnly        bool
	OnFailure       model.OnFailure
	ApproveAll      bool // of the workflow or of the install
	CancelRequested bool
	RequestedAt     time.Time // when a person asked for the workflow
	Steps           []Step    // by index
	// Stack and Runner are those of the install.
	StackActive    bool
	StackDeadline  time.Time
	RunnerActive   bool // enrolled: its keys are known
	RunnerDeadline time.Time
	RunnerID       string
	// MissingSecrets are those that need a value and have none.
	MissingSecrets []string
	// NoMachine: nobody has enrolled as the runner, so no order can be made.
	NoMachine bool
	// Locks are those of the install's resources.
	Locks Locks
	// PeopleDecide: a policy asks for people, so ApproveAll approves nothing.
	PeopleDecide bool
	// Hold is why no change of the install is carried out now; nil for no reason.
	Hold *Hold
}

// Step is a row of steps, with the change and the check run it is at.
type Step struct {
	ID         string
	Name       string
	Kind       StepKind
	ResourceID string
	Needs      []string
	State      model.StepState
	WaitReason model.WaitReason
	WaitOn     string
	// WaitDeadline is when the wait ends in vain.
	WaitDeadline time.Time
	// WaitRetryAt is when the engine looks again by itself; zero for not before the deadline.
	WaitRetryAt time.Time
	// MaxRetries is how often a failed change is planned again without being
	// asked, unless its job said jobspec.ReasonNeedsChange. A check is never run
	// again by itself.
	MaxRetries int
	// Unwanted says why nobody wants the step any more, by the toggles as they are
	// now; empty when it is wanted. It counts until the step starts.
	Unwanted string
	Change   *Change // nil before the first
	Run      *Job    // of a check: the job that runs it
	Gate     *Gate   // of a gate: what it looks at
	// Hold is why its change, and no other, is not carried out now; nil for no reason.
	Hold *Hold
	// Uncertain, Stale and Failed count the step's changes that ended so since a
	// person last asked for a retry. HostEnded counts those that are uncertain or
	// stale because the runner's host ended, which are not in the others.
	Uncertain int
	Stale     int
	Failed    int
	HostEnded int
	// Replaced counts the runs of a check that were made for a machine which another
	// one replaced before they began, since a person last asked for a retry.
	Replaced int
}

// Change is a row of changes, with its jobs.
type Change struct {
	ID       string
	State    model.ChangeState
	ReadOnly bool // mutates nothing of the install, or only takes leave away: needs no decision and no lock
	Plan     *Job
	Apply    *Job
	// EffectDigest is of the plan; ApprovedDigest is what a person approved, of
	// this change or of the one that it replaces.
	EffectDigest   string
	ApprovedDigest string
	// Votes is how many approvals of people count for that effect, and Missing how many
	// are still needed. Void says of those that do not count why.
	Votes, Missing int
	Void           []string
	// Consent is the customer's word on it, "" where the runner asks for none, and
	// ConsentText says more of it, for people.
	Consent     model.ConsentState
	ConsentText string
	// Deadline is when a proposal expires.
	Deadline time.Time
	// ReopenedUntil is when the proposal expires that an approved change becomes again.
	ReopenedUntil time.Time
	Error         string
	// Remedy is what the runner or its engine advise.
	Remedy string
	// DeniedBy is who denied it, empty when nobody decided in time, and Then what they
	// want to become of the step.
	DeniedBy string
	Then     model.DeniedThen
}

// Job is a row of runner_jobs.
type Job struct {
	ID              string
	State           model.JobState
	Outcome         string // jobspec.Outcome, once ended
	Reason          string // jobspec.Reason, once ended
	NoChange        bool
	Error           string
	Remedy          string
	CancelRequested bool
	// PolicyDenies says, of a plan, which of the vendor's policies deny it; "" when none
	// does, or when a person overrode them for this effect.
	PolicyDenies string
}

// ended says whether the job will not be worked on any more.
func (j *Job) ended() bool {
	return j != nil && j.State.Ended()
}
