// Package job works on one attempt of a job: it makes the job directory, checks
// the order, starts the engine, follows it, and reports how it ended. Whatever
// kills the agent meanwhile, the next one continues from what is on disk.
//
//	claimed ─▶ prepare ─▶ ordered ─▶ starting ─▶ started ─▶ ended ─▶ delivered
//	           pull,      nonce,     engine is    wait,      report    plan, result,
//	           open       intent     started      tail       on disk   then the rest
//	           leaves     on disk                                      of the log
//
// Each phase is written to disk before what it names is done (package recovery
// decides what a later agent makes of it).
//
// # The directory of an attempt
//
// The engine gets a directory of its own, which is all that the job contract
// (package jobspec) speaks of. What the agent must be able to trust later is
// next to it, out of the engine's reach:
//
//	jobs/<job>.<attempt>/
//	  attempt.json   assignment, phase, process, access to the state proxy
//	  report.json    what is to be reported, redacted and sealed
//	  plan.json      what a plan hands in, before the report
//	  lock           held by the agent and by the engine
//	  stdout.log, stderr.log   written by the engine, tailed by the agent
//	  engine/        the job directory of the contract, the engine's own
package job
