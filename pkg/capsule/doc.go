// Package capsule binds what was approved to what is executed.
//
// An Effect says everything that a change will do: who, where, with which
// artifact and tool, by which plan. People approve its digest. An Order is what
// the control plane has a runner do: one job, by one machine, so many times,
// until an hour. For a job that changes something the order is the capsule of
// the effect: good once, under one fence, with a nonce.
//
//	plan ──▶ Effect ──Digest──▶ approved by people
//	                     │
//	                     ▼
//	              Order ──Sign──▶ Envelope ──wire──▶ Verify ──▶ judged by the runner
//
// The runner trusts nothing in an order but the signature: it recomputes each
// fact and names every field that differs. Envelopes (DSSE, Ed25519) also carry
// signed settings. The package holds keys, digests and envelopes; it opens no
// network connection, and the only file it writes is the runner's set of used
// nonces.
package capsule
