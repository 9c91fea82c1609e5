// Package capsule binds what was approved to what is executed.
//
// An Effect says everything that a change will do: who, where, with which
// artifact and tool, by which plan. People approve its digest. A Capsule is
// the control plane's one-time order to bring one effect about: signed, for
// one job, one fence, one runner, with an expiry and a nonce.
//
//	plan ──▶ Effect ──Digest──▶ approved by people
//	                     │
//	                     ▼
//	             Capsule ──Sign──▶ Envelope ──wire──▶ Verify ──▶ Check(Capsule, Facts)
//	                                                                │
//	                              runner recomputes its own Facts ──┘
//
// The runner trusts nothing in the capsule but the signature: it recomputes
// each fact and Check names every field that differs. Envelopes (DSSE,
// Ed25519) also carry signed settings. The package holds keys, digests and
// decisions; it opens no network connection, and the only file it writes is
// the runner's set of used nonces.
package capsule
