package model

import (
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/verdict"
)

// InstallState is the state of an install.
type InstallState string

// The states of an install.
const (
	InstallNew            InstallState = "new"            // nothing was provisioned yet
	InstallProvisioning   InstallState = "provisioning"   // its first provision runs
	InstallLive           InstallState = "live"           // provisioned once
	InstallDeprovisioning InstallState = "deprovisioning" // being taken down
	InstallDeprovisioned  InstallState = "deprovisioned"  // nothing of it is left
	InstallForgotten      InstallState = "forgotten"      // its record is deleted
)

// ResourceState is what is known about a resource of an install.
type ResourceState string

// The states of a resource.
const (
	ResourceAbsent   ResourceState = "absent"
	ResourceChanging ResourceState = "changing" // a change executes
	ResourceLive     ResourceState = "live"
	ResourceFailed   ResourceState = "failed"   // what is there is not what was wanted
	ResourceUnknown  ResourceState = "unknown"  // an outcome is uncertain; the next plan resolves it
	ResourceOrphaned ResourceState = "orphaned" // its component is in no release any more
)

// StackState is the state of a version of an install's stack.
type StackState string

// The states of a stack version.
const (
	StackPending  StackState = "pending"  // the customer has not applied it
	StackActive   StackState = "active"   // it has phoned home
	StackExpired  StackState = "expired"  // it did not in time
	StackOutdated StackState = "outdated" // a newer version replaced it
)

// RunnerState is the state of a runner.
type RunnerState string

// The states of a runner.
const (
	RunnerPending RunnerState = "pending" // no machine has enrolled
	RunnerActive  RunnerState = "active"
	RunnerRevoked RunnerState = "revoked"
)

// EnrolmentState is the state of an enrolment secret.
type EnrolmentState string

// The states of an enrolment.
const (
	EnrolmentOpen    EnrolmentState = "open"
	EnrolmentUsed    EnrolmentState = "used" // bound to the key of the machine that used it
	EnrolmentExpired EnrolmentState = "expired"
)

// Verdict is what is known about the health of an install, a check or a resource.
type Verdict = verdict.Verdict

// The verdicts.
const (
	Unknown   Verdict = "unknown" // not enough outcomes, or silence
	Healthy   Verdict = "healthy"
	Unhealthy Verdict = "unhealthy"
)

// RemediationState is where a remediation stands, as the runner says it.
type RemediationState = jobspec.RemediationState

// The states of a remediation.
const (
	RemediationWaiting        RemediationState = "waiting"
	RemediationRunning        RemediationState = "running"
	RemediationHelped         RemediationState = "helped"
	RemediationRecovered      RemediationState = "recovered"
	RemediationNeedsAttention RemediationState = "needs_attention"
	RemediationDropped        RemediationState = "dropped"
)

// ResourceKind says what a resource of an install is.
type ResourceKind string

// The kinds of resources.
const (
	KindStack     ResourceKind = "stack"
	KindSandbox   ResourceKind = "sandbox"
	KindComponent ResourceKind = "component"
	KindSecrets   ResourceKind = "secrets" // the copies of secrets in the install's cluster
	// KindScripts is built and released with the components, and no resource of an
	// install: a directory of a repository that steps of actions run in.
	KindScripts ResourceKind = "scripts"
)

// RunnerKind says what a runner works for.
type RunnerKind string

// The kinds of runners.
const (
	InstallRunner RunnerKind = "install"
	BuildRunner   RunnerKind = "build" // builds for an org
)

// StateKind says what a stored Terraform state is.
type StateKind string

// The kinds of stored states.
const (
	StateCurrent    StateKind = "current"
	StateSuperseded StateKind = "superseded" // a newer one replaced it
	StateOrphaned   StateKind = "orphaned"   // written by an attempt that was over: evidence
)
