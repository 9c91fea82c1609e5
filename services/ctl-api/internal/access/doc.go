// Package access is ctl-api's side of package auth: it finds out who stands
// behind a token, has the table of routes with what each asks for, and knows how
// far grants reach that are limited to a customer, an app or an install. It also
// keeps the keys of an org, and the org's own chain, in which every mutation is
// recorded.
//
// Identity comes only from the verified credential:
//
//	token ── SHA-256 ──▶ org (berth.org_of_secret) ──▶ account, grants
//	                                                      │
//	route ──▶ permission, where (routes.go) ────────────▶ may?
//
// Row-level security keeps orgs apart whatever this package says; roles and
// scopes inside an org are enforced here.
package access
