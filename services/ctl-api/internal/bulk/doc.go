// Package bulk does the same thing in many installs: it keeps the request and one
// item for each install, and starts the workflows one after the other, each in a
// transaction of its own. Which installs these are is decided by the caller, and
// how a workflow starts by the engine (Office.Start).
//
//	pending ──▶ started   the workflow's id is in the item
//	        ├─▶ done      there was no workflow to start: paused, resumed
//	        └─▶ refused   what the problem says is in the item
package bulk
