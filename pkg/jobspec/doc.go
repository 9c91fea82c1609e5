// Package jobspec is the job contract: what a runner is asked to do and what it
// answers. The control plane writes a Spec, runner-api hands it out with a
// lease, the agent turns it into a job directory, an engine works on that
// directory, and a Result goes the way back.
//
// # The job directory
//
// A job is a directory. Everything an engine reads and writes is in it:
//
//	job.json          the Spec, sealed leaves opened; only the engine's user can
//	                  read it, and not write it
//	in/artifact/      the unpacked artifact (plan, apply)
//	in/scripts/HEX/   the unpacked artifact with this digest, which steps of an
//	                  action run in; nobody may write to it
//	in/source/        the unpacked source archive (build from a local directory)
//	in/build/         what a build of an image needs of the runner: secrets/NAME,
//	                  config.json (credentials of base images), tls/ (of BuildKit)
//	in/cache/         what earlier builds of the image left for this one, an OCI image
//	                  layout with one artifact; absent when there is nothing
//	in/pinned/        what the plan of this change pinned (apply only)
//	in/previous/      what a change of uncertain outcome pinned, which this plan
//	                  follows (plan only, when it is still there)
//	in/kubeconfig     how to reach the cluster, for kinds and actions that need one
//	                  (all of in/ is to be read only, and belongs to root where
//	                  the agent is root)
//	work/             scratch, the engine's own; HOME and TMPDIR point into it
//	out/result.json   the engine's Result, written last, by rename
//	out/pinned/       what the apply needs again, byte for byte: the saved plan,
//	                  the rendered inputs; the agent packs, seals and keeps it
//	out/plan.canonical.json  the plan without what differs between two plans of
//	                  the same thing; its salted digest goes into the effect
//	out/plan.summary.json    a PlanSummary, for people
//	out/footprint.json       a footprint.Known, of engines that work on a cluster
//	out/inputs.json   the rendered inputs; their salted digest goes into the effect
//	out/artifact/     what a build made: a directory that the agent packs and pushes
//	out/image/        an OCI image layout with one image that a build copied or made;
//	                  the agent pushes it as it is, and after one that was made what
//	                  else the index lists: artifacts that refer to it
//	out/cache/        what this build of an image leaves for the next one, the same way
//	out/outputs.json  an Outputs
//	out/progress.json a Progress: what the engine does right now
//
// stdout and stderr of the engine are files that the agent tails. They lie outside
// of the directory, where the engine cannot put a link in their place.
//
// The engine is started in the directory as `berth-engine run DIR` with a clean
// environment (PATH, HOME, TMPDIR, TRACEPARENT, BERTH_INSTALL_DIR, the TF_HTTP_*
// settings, BERTH_TERRAFORM, KUBECONFIG, BERTH_REGISTRY: the install's own
// registry as kubelets call it). SIGTERM means: stop at the next safe point, then
// write the result. Exit codes: ExitFinished, ExitFailed, ExitRefused.
//
// The engine gets no credential of Berth: registry, state backend and log are
// reached by the agent for it.
package jobspec

// Exit codes of an engine.
const (
	ExitFinished = 0  // did what was asked; out/result.json says what came of it
	ExitFailed   = 1  // tried and failed; out/result.json says why
	ExitRefused  = 10 // did nothing, because the order was not acceptable
)
