// Package flow decides what a workflow does, from plain structs alone: Plan
// turns a request into the graph of steps, and Next looks at the rows of one
// workflow and says the one thing to do now. It does no I/O and knows no store;
// package workflow reads the rows, asks, and does it.
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
package flow
