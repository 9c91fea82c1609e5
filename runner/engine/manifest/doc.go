// Package manifest plans and applies raw Kubernetes manifests, by server-side
// apply under the field manager of package kube.
//
//	plan   in/artifact ─▶ render ─▶ dry run per object ─▶ out/pinned, out/plan.*
//	apply  in/pinned ─▶ claim ─▶ dry run again, compare ─▶ write ─▶ wait ─▶ prune
//
// The objects that an apply made are listed in the inventory of the component.
// One that is in it and no longer in the manifest is pruned, and named as a
// delete in the plan, with these exceptions, which the plan shows as keep:
//
//   - an object with the annotation berth.dev/prune=never stays, also at a
//     teardown;
//   - namespaces, CRDs, volumes and volume claims are never pruned, since data
//     of others goes with them, unless their annotation is
//     berth.dev/prune=always; a teardown removes them;
//   - a namespace is removed, also at a teardown, only if it was made for this
//     install and no other component's inventory is in it.
//
// A field that another field manager set is taken from it only when the plan
// showed that.
package manifest
