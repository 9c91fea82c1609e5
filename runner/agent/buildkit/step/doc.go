// Package step bounds what one RUN step of a build may use. BuildKit starts it in
// the place of runc: rootless, it sets no limits itself.
//
//	buildkitd ─▶ berth-runc run ID (Main: waits, and says what limit was met)
//	                  └─▶ berth-runc --inside … (joins the control groups, sets its
//	                         own limits) ─▶ becomes runc ─▶ the step
//
// Where the machine has control groups that the agent may use, a limit holds for all
// processes of a step together. Elsewhere memory is that of each process, and
// processes are counted over all steps of the daemon.
package step
