// Package statetree makes the tree that the templates of an install read: its
// inputs, the variables of its app, what its stack, sandbox, components and
// actions gave. It is made from rows and stored by version; a new version exists
// only when the tree says something new.
//
// Sensitive leaves are opened with the org's key and sealed at once to the
// install's own (package recipient), so the stored tree holds no secret in clear.
package statetree
