// Package workflow is the engine that brings an install from what it is to what
// it shall be.
//
// Package flow decides what that takes; this package does it. Advance, the only
// worker, locks the workflow's row, reads, asks flow.Next, does that one thing in
// the same transaction, and repeats until Next has nothing more. Rows are the
// program counter: a worker that dies anywhere is simply followed by another.
//
// Who wakes it: the request itself, runner-api when a job ends
// (berth.wake_workflow), a decision, a retry or cancel, the end of a lock, and a
// River job scheduled for each deadline.
package workflow
