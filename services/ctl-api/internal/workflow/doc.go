// Package workflow is the engine that brings an install from what it is to what
// it shall be.
//
// Package flow decides what that takes; this package does it. Advance, the only
// worker, locks the workflow's row, reads, asks flow.Next, does that one thing in
// the same transaction, and repeats until Next has nothing more. Moves share a
// transaction until one hands work to the runner, which has to be committed to be
// seen. Rows are the program counter: a worker that dies anywhere is simply followed
// by another.
//
//	load (load.go) ─▶ flow.Next ─▶ act (act.go) ─┬─ step.go, lifecycle.go   steps, the workflow, the install
//	                                             ├─ plan.go, propose.go     a change up to its decision
//	                                             ├─ execute.go, settle.go   the grant, and what came of it
//	                                             ├─ run.go                  runs of actions and checks
//	                                             └─ dispatch.go             the job with its signed order
//
// What is done is functions over the subject of a decision: the rows that it is
// about. Requests (request.go) and answers of people (decide.go) come from the
// API; why.go explains what a workflow waits for.
//
// Rows are locked in one order, so that nobody waits in a circle: the workflow's
// (LockWorkflow), the install's (LockInstallRow, before the first move), then what belongs to the install:
// recipients, state versions, resources, changes, settings. A request and tend
// begin with the install's and lock no workflow after it: they wake it.
//
// Who wakes it: the request itself, runner-api when a job ends
// (berth.wake_workflow), a decision, a retry or cancel, the end of a lock, and a
// River job scheduled for each deadline.
package workflow
