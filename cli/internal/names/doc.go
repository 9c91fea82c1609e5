// Package names finds the one thing that a person means: by its name, its id, or
// the beginning of its id; and changes, workflows and steps also by the install
// that they belong to, as in acme or acme/web.
//
// Find decides, from what was typed and what exists alone. It never picks what
// is only similar: a similar name is a hint in the error. Book asks the control
// plane what exists.
package names
