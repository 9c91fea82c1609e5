// Package guardrail is what the customer's rules say of a change: which rules there are, what
// a failure of each means, and what follows. It is pure; package guards reads the files, asks
// the policy engine and remembers.
//
//	files ──Load──▶ Set ──Request──▶ policy engine ──Reply──▶ Judge ──▶ Finding
//	                 │                                                  allow, warn, ask, deny
//	                 └─ Digest: part of the effect that an apply compares again
//
// Rules are those that ship with the runner (standard/) and the customer's own. Doubt asks: a
// file that cannot be read, an engine that is missing, a document that was left out.
package guardrail
