// Package consents is what an install's runner keeps of the customer's consent: which
// changes were planned, what people signed, and the standing rules. What follows from
// that is decided by package consent (pure); this package reads, writes, and counts.
//
//	plan ──▶ Keep ──▶ change-…, plan-… ─┐                      ┌─▶ Grant ─▶ intent in the chain
//	berth-runner approve ──▶ answer-… ──┼─▶ Look ─▶ Stand ─────┤
//	berth-runner consent rules put ─────┘                      └─▶ Tell ─▶ control plane
//	        └▶ rules.json ─▶ Settle: chain, then rules-floor.json
//
// All of it is files in one directory that only the agent's user can write. An answer is
// a file of its own that nobody changes; a crash leaves it or none. Nothing is used up
// here: that an effect is there, or was tried three times, the ledger of orders knows.
package consents
