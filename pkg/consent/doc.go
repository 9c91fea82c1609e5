// Package consent is how the customer's side agrees to a change: what its people sign,
// whose signatures count, and which changes a standing rule agrees to in their place.
// It does no I/O; the runner decides with it, and a verifier repeats that offline.
//
//	plan ─▶ Facts ─┐
//	Config, Rules ─┼─▶ Settle ─▶ not asked | needed | given | denied
//	signed answers ┘
//
// A Statement names one effect under one origin of one install, so it is good for
// nothing else. It is signed by an Ed25519 key (DSSE) or by an SSH key (OpenSSH's SSHSIG
// over the statement's bytes, in the namespace of its Purpose); a security key has to
// have been touched. Holders are people: each counts once, with as many keys as they
// have. One denial ends the matter, whatever was signed before or after it, so the order
// in which answers arrive decides nothing.
package consent
