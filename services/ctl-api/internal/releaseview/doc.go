// Package releaseview reads what a release pins: its app, the graph of its
// components, what it brings to a runner, and what of it is live in an install.
// Releases and their revisions never change, so the same release always reads the
// same. It writes nothing.
//
// All of it runs inside store.Tx of the org. Errors are fault.ErrNotFound, wrapped,
// for a release that the org does not have, and what a stored body that cannot be
// decoded gives.
package releaseview
