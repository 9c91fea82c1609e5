// Package egress knows what leaves the runner's agent, and writes it down: every
// request of the agent passes the transport of a Ledger, which refuses one that is
// of no class. It also knows which classes the customer has switched off; who
// makes the bytes leaves them out.
//
// Engines have a network of their own, and are not covered. Nor is what a plugin sends
// to its hosts over the agent (package hostproxy): the agent neither makes nor reads
// it. The job's log tells of it.
package egress
