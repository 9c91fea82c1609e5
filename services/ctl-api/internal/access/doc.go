// Package access knows who asks and what they may do: tokens, principals,
// roles, the table of routes and their permissions, the keys of an org, and the
// org's own chain, in which every mutation is recorded.
//
// Identity comes only from the verified credential:
//
//	token ── SHA-256 ──▶ org (berth.org_of_secret) ──▶ account, grants (in the org's transaction)
//	                                                        │
//	route ──▶ permission (routes.go) ──────────────────────▶ may? where?
//
// Row-level security keeps orgs apart whatever this package says; roles and
// scopes inside an org are enforced here.
package access
