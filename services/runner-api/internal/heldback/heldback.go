// Package heldback decides whether an attempt of a remediation may begin now, as far as the
// control plane sees it: what else changes the install, and how the org's other remediations go. A runner that is away
// is bounded by its own counts only.
package heldback

import "fmt"

// Limits of an org.
const (
	// AtOnce is in how many installs remediations run at the same time: the next ones wait.
	AtOnce = 10
	// FailedInAnHour is in how many installs the same action of an app may not help within an
	// hour: then it is stopped in all others.
	FailedInAnHour = 3
)

// Facts are what a decision depends on.
type Facts struct {
	// Locked is a resource of the install that a change has locked, "" for none.
	Locked string
	// Workflow is the number of a workflow of the install that runs, 0 for none.
	Workflow int
	// Running are the other installs of the org in which remediations run.
	Running int
	// Failed are the other installs of the app in which this action did not help in the last
	// hour.
	Failed int
	// Action is the action that would run.
	Action string
}

// Why says why the attempt should wait, "" when it may begin. It does no I/O.
func Why(f Facts) string {
	switch {
	case f.Locked != "":
		return "a change has locked " + f.Locked
	case f.Workflow != 0:
		return fmt.Sprintf("workflow %d of the install runs", f.Workflow)
	case f.Failed >= FailedInAnHour:
		return fmt.Sprintf("action %s did not help in %d installs in the last hour: look at these first", f.Action, f.Failed)
	case f.Running >= AtOnce:
		return fmt.Sprintf("remediations run in %d installs of the org now", f.Running)
	}
	return ""
}
