package model

// AlertKind says what is wrong with an install.
type AlertKind string

// The kinds of alerts.
const (
	AlertUnhealthy       AlertKind = "unhealthy"        // a check or probe has the verdict unhealthy
	AlertRunnerSilent    AlertKind = "runner_silent"    // nothing is heard of the install's runner
	AlertWaitingTooLong  AlertKind = "waiting_too_long" // a workflow waits, and nobody ends it
	AlertWorkflowFailed  AlertKind = "workflow_failed"  // the last workflow failed
	AlertExpiring        AlertKind = "expiring"         // something ends soon
	AlertChainUnreported AlertKind = "chain_unreported" // the runner worked, and its chain did not arrive
	AlertDrift           AlertKind = "drift"            // a resource is not as it was deployed
	AlertObjective       AlertKind = "objective"        // the install was unhealthy for longer than its objective allows
)

// AlertKinds are all kinds.
var AlertKinds = []AlertKind{
	AlertUnhealthy, AlertRunnerSilent, AlertWaitingTooLong, AlertWorkflowFailed, AlertExpiring, AlertChainUnreported, AlertDrift, AlertObjective,
}

// AlertState is the state of an alert.
type AlertState string

// The states of an alert.
const (
	AlertHeld   AlertState = "held" // something is wrong, and nobody is told yet: see AlertHold
	AlertOpen   AlertState = "open"
	AlertClosed AlertState = "closed"
)

// AlertHold says why nobody is told of an alert.
type AlertHold string

// The reasons to hold an alert back.
const (
	HoldTooEarly    AlertHold = "too_early"    // it may still pass
	HoldMuted       AlertHold = "muted"        // by a person, until a time
	HoldPlannedWork AlertHold = "planned_work" // a change of what is wrong runs, or has just ended
)

// AlertClosedBecause says why an alert is closed.
type AlertClosedBecause string

// The reasons to close an alert.
const (
	ClosedRecovered AlertClosedBecause = "recovered" // all was well for long enough
	ClosedGone      AlertClosedBecause = "gone"      // what it was about is not there any more
)
