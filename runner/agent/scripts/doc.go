// Package scripts knows which vendor scripts this runner may run, and what it
// has run of them. The set is the runner's own record: a script comes into it
// only through an accepted release, and nothing that the control plane signs
// makes the runner run another one.
//
//	release ──▶ Compare(accepted, release) ──▶ people ──▶ Set.Replace
//	                                                          │
//	order or signed settings ──▶ Set.Find, Set.Get ──▶ run ──▶ Ledger ──▶ chain
//
// What a script does when it runs is the business of the engines.
package scripts
