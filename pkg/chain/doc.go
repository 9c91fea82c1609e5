// Package chain keeps the hash-chained record of what was done to an install
// or an org, and checks such a record offline.
//
// A chain is a file of JSON lines. Each line names the hash of the line before
// and ends in its writer's signature:
//
//	{"chain":"ins0…","seq":7,"prev":"sha256:…",…,"sig":"…"}
//	 └──────────── signed ─────────────────────┘
//	└──────────────── hashed, as stored ──────────────────┘
//
// Hash and signature are over stored bytes, never over re-encoded JSON. Each
// effect has two records: the intent, stored before it (no record, no effect),
// and the outcome. There is one writer per chain; each writer regularly
// records the other's head as an anchor, so neither side can rewrite or cut
// its chain unseen.
//
// What the package cannot see: records cut off the end of a chain whose head
// nobody else kept, and effects for which no intent was ever written.
package chain
