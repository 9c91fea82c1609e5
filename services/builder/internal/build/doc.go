// Package build brings a build from "queued" to its end, and makes the release
// when the last build of a config has succeeded.
//
//	          resolve ──▶ reuse ─────────────────────────────┐
//	queued ─┤                                                ├─▶ succeeded ─▶ release
//	          stage ──▶ Build Runner ──▶ running ──▶ look ───┘
//	          └───────────────── failed, cancelled ◀─────────┘
//
// The row is the program counter. [Next] decides from rows and from facts about
// the world outside the one thing to do now; [Worker.Advance] does it, and asks
// again, until there is something to wait for. A decision that writes is taken
// and done in one transaction, with app and build locked. A decision that looks
// outside (git, registry) writes nothing: what it learned is a fact for the
// next look at the rows. So two workers at once do no harm, and after a crash
// the next one continues.
package build
