// Package secretsync copies secrets that the customer keeps into Secrets of the
// install's cluster, and takes away what is no longer declared.
//
//	plan   job.json ─▶ wanted ─▶ compare with what is there ─▶ out/pinned, out/plan.*
//	apply  in/pinned ─▶ claim ─▶ compare again ─▶ record ─▶ write ─▶ remove ─▶ record
//
// A copy belongs to an install by its labels and annotations, which it has from the
// request that makes it. A Secret without them is somebody else's: it is never written to
// nor removed, and a plan that would have to is refused. The inventory, a ConfigMap in the
// namespace of the install, lists what an apply may have made before it makes it, so that
// nothing is forgotten when the engine is killed.
//
// A value is in the job's state and in out/pinned, which the agent seals, and nowhere
// else: the plan, its summary, annotations and outputs name secrets with their version and
// their salted digest.
package secretsync
