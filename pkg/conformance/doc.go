// Package conformance is the suite that every engine passes: the built-in ones and
// plugins. It drives an executable over job directories, as the agent does, and
// knows nothing of what the engine works on; a World does.
//
// Each rule of the contract is a Must with a number, and each Must has one test
// (docs/reference/plugin-contract.md lists them). A rule that has no meaning for an
// engine is declared with the reason, never skipped in silence.
package conformance
