// Package kube is what all engines that work on a Kubernetes cluster share: the
// connection, objects and their order, what would change in them and whether
// that still holds, the inventory with its fence, namespaces, and readiness.
//
// How objects are rendered and written belongs to the engines:
//
//	plan   render ─▶ dry run per object ─▶ []Change ─▶ Settle ─▶ canonical, summary, pinned
//	apply  Claim ─▶ dry run again ─▶ Compare ─▶ write (Held before each) ─▶ Save ─▶ Wait
//
// Changes hold values in clear, for the canonical plan and for what is pinned;
// only what Summarise, Diff and Compare return may be shown.
package kube
