// Package terraform plans and applies Terraform modules.
//
//	plan   in/artifact ─▶ work/module ─▶ init ─▶ plan ─▶ out/pinned, out/plan.*
//	apply  in/artifact + in/pinned ─▶ work/module ─▶ init ─▶ apply of the saved plan
//
// What a plan renders (variables, environment) is pinned with the saved plan,
// so an apply renders nothing and does exactly what was shown. State is kept by
// the agent's HTTP backend, whose address and password are in the environment
// only: neither plan files nor modules know where the state is.
//
// The engine holds no state and takes no lock of its own; Terraform's lock is
// taken by an apply, and not by a plan.
package terraform
