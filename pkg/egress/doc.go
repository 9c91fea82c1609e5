// Package egress is the form of a runner's egress ledger: one line for what left
// the machine, each with the hash of the line before. It reads and checks ledgers;
// the agent writes them (runner/agent/egress).
//
// The ledger has no signature of its own. Its head stands in the install's chain,
// which is signed: what a head covers cannot be rewritten unnoticed.
package egress
