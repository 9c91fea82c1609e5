// Package offers decides which releases a runner takes whose customer has pinned the
// vendor's key: only what the vendor signed, and nothing that is older, expired, mixed or
// revoked. Without a pinned key it lets everything pass.
//
//	acceptance of a release ─▶ Decide ─▶ seen ─▶ accepted ──▶ chain
//	plan, apply, run ────────▶ Admit: what the order names is in one such release
//
// Decide and Admit are pure. Gate keeps what they go by: trust.json and the customer's
// revocations, which only the customer writes, and the releases that were seen and
// accepted, which only the agent writes. What was accepted is in the chain as well, so
// that another machine that takes over knows it.
//
// A seen release is one with a good statement that nobody has accepted yet: its plans are
// shown together with the question, so they may be made; nothing of it is applied.
package offers
