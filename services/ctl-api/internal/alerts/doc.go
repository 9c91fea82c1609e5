// Package alerts decides when people are told that something is wrong with an
// install: once per episode, and once for all installs that share a cause. It does
// no I/O; package alertwatch reads what is wrong, and writes the rows.
//
//	          bad                  not held back
//	(nothing) ───▶ held ──────────────────────────▶ open ──▶ closed
//	    ▲            │ not bad any more              │  ▲
//	    └────────────┘                          good └──┘ bad within the clear window
//
// An episode ends when all has been well for the clear window of its kind. What is
// bad again before that belongs to the same episode.
package alerts
