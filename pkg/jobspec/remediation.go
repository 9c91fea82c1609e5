package jobspec

import "time"

// RemediationState is where a remediation stands.
type RemediationState string

// The states of a remediation.
const (
	RemediationWaiting   RemediationState = "waiting"   // the check is unhealthy, and something stands against the next attempt
	RemediationRunning   RemediationState = "running"   // an attempt runs, or the next ticks tell whether it helped
	RemediationHelped    RemediationState = "helped"    // the check became healthy after an attempt
	RemediationRecovered RemediationState = "recovered" // the check became healthy before there was an attempt
	// RemediationNeedsAttention: no attempt helped. A person has to look.
	RemediationNeedsAttention RemediationState = "needs_attention"
	RemediationDropped        RemediationState = "dropped" // the release has no remediation of this check any more
)

// Remediation is all that a runner did about one check until it stayed healthy. The
// runner reports it whole each time it changes; of two reports the one with the
// higher Seq counts.
type Remediation struct {
	// Check is a Scheduled.Name, Action the name of the script that heals it.
	Check  string `json:"check"`
	Action string `json:"action"`
	// ResourceID is what a probe looks at, "" for a check.
	ResourceID string           `json:"resource_id,omitempty"`
	Seq        int64            `json:"seq"`
	State      RemediationState `json:"state"`
	// Why says what it waits for, or why it needs attention.
	Why string `json:"why,omitempty"`
	// Attempts is how many there were, Of how many there may be.
	Attempts int `json:"attempts"`
	Of       int `json:"of"`
	// Reverted: what the attempts did was taken back.
	Reverted  bool      `json:"reverted,omitempty"`
	BeganAt   time.Time `json:"began_at"`
	ChangedAt time.Time `json:"changed_at"`
	// EndedAt is set once the check stayed healthy: the next time is another remediation.
	EndedAt time.Time `json:"ended_at,omitzero"`
	// Asks: the runner is about to start an attempt and asks whether that may begin now.
	Asks bool `json:"asks,omitempty"`
}
