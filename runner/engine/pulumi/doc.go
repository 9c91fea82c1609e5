// Package pulumi plans and applies programs of Pulumi with the vendor's own command.
//
// The command keeps its state in a directory of the job (a file:// backend). It is
// brought there from the state that the agent keeps for the resource, and what the
// command writes is handed in as it is written, so that an apply that is killed
// leaves behind what it did. The document in between (state.go) has the outer form
// of a Terraform state, which the agent reads: serial, lineage, outputs. Inside of
// it stand the deployment and the passphrase that encrypts its secrets: made once
// per resource, and sealed with the rest, so it never leaves the customer's side.
//
//	Build   the folder as it is; a program in Go is compiled
//	Plan    preview --refresh --save-plan; a teardown is a preview of destroy
//	Apply   up --refresh --plan, or destroy --refresh
package pulumi
