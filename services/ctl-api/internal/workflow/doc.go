// Package workflow is the engine that brings an install from what it is to what
// it shall be.
//
// It has a pure half and an acting half. Plan turns a request into the graph of
// steps; Next looks at the rows of one workflow and says the one thing to do
// now. Neither does I/O; both are tested as tables. Advance, the only worker,
// locks the workflow's row, reads, asks Next, does that one thing in the same
// transaction, and repeats until Next has nothing more. Rows are the program
// counter: a worker that dies anywhere is simply followed by another.
//
// # A step that mutates
//
//	pending ─▶ running ──────────────────────────────────────▶ succeeded
//	             │  change: preparing ─▶ proposed ─▶ approved ─▶ executing ─▶ applied
//	             │             │            │          │             ├─▶ uncertain ─▶ a new change, which plans
//	             │             │            │          │             ├─▶ stale     ─▶ a new change, which plans
//	             │             │            │          │             └─▶ failed    ─▶ retry or failed
//	             │             │            │          └ waits for the resource's lock
//	             │             │            ├─▶ denied ─▶ step and workflow end
//	             │             │            └─▶ superseded by another workflow's proposal
//	             │             └─▶ no_change ─▶ step succeeded
//	             └─ waits for stack, runner, decision, lock: a row with reason, on, deadline
//
// Who wakes it: the request itself, runner-api when a job ends
// (berth.wake_workflow), a decision, a retry or cancel, the end of a lock, and a
// River job scheduled for each deadline.
package workflow
