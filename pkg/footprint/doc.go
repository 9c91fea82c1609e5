// Package footprint says what a change newly needs, gives away and exposes: verbs of
// Kubernetes, actions of clouds, rights of what it deploys, addresses that become reachable,
// images, and hosts that are spoken to.
//
// It is computed from the documents that rules are held against (package policy). Each of
// them has what is and what will be, so "new" means: nothing of the component that is there
// now needs or has it. Nothing is stored for that, and it is the same however often it is
// computed. Values are taken from fields that are no secrets; see hosts.go for the only ones
// that could be.
//
//	documents ─┐
//	           ├─▶ Of ──▶ Footprint ──▶ Lines, for people
//	Known ─────┘                   └──▶ Digest, a part of the effect
//
// The package does no I/O. Whether the runner has a right is asked by the engine, which
// leaves the answers in Known.
package footprint
