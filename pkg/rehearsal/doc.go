// Package rehearsal says what an install gets in the place of a cloud: the outputs
// of the stack and the sandbox, the cloud account, and the outputs of components
// that need a cloud. A person gives them, they are recorded from a real install, or
// they are made up.
//
//	app, Rehearsal ─▶ Complete ─▶ Result: Outputs, and for each path its Source
//
// What is made up is what the platform's stack always gives and what the templates
// of the app read. It is valid in form, clearly fictional (see madeup.go), and the
// same each time for the same app, so that a plan that was approved stays the same.
//
// Nothing here does I/O.
package rehearsal
