// Package access is ctl-api's side of package auth: it remembers for seconds who
// stands behind a token, has the table of routes with what each asks for, and
// finds where what a route names stands, to hold callers to the reach of their
// grants. It makes orgs and tokens; the keys of an org are in package keys.
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
