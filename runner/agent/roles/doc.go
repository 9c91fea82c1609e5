// Package roles is the customer's switch of roles: which break-glass and own roles the
// accepted release declares, which of them are on, until when, and by whom. All are off
// until the customer switches one on; nothing that the control plane sends or signs
// does.
//
//	accepted release ──▶ Declare ─┐
//	berth-runner roles ──▶ Enable, Disable ──▶ roles.json ──▶ Keep ──▶ chain
//	                     time over, release without it ──┘     │
//	order ──▶ Judge ◀───────────────────────────────────────────┴──▶ Tell ──▶ control plane
//
// A switch is on disk first, then in the chain; a role counts as on only once both are
// so, and as off at once. What is told to the control plane is a report: nothing here
// is decided by what becomes of it.
//
// A role is known by its name as the app writes it, which is part of the accepted
// release and of the accepted script. A rendered name is for people: it comes from a
// state that the control plane makes, so nothing is found by it that another role
// could claim.
package roles
