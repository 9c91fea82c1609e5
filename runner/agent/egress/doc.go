// Package egress knows what leaves the runner's agent, and writes it down: every
// request of the agent passes the transport of a Ledger, which refuses one that is
// of no class. It also knows which classes the customer has switched off; who
// makes the bytes leaves them out.
//
// Engines have a network of their own, and are not covered.
package egress
