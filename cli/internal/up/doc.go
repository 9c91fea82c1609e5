// Package up owns Berth on one machine: `berth up`, `berth down` and what they
// agree on, the data folder. It starts Postgres, the four services and one
// runner per local install as processes, keeps them alive, and stops them.
//
//	berth up ──flock──▶ supervisor ──keeps──▶ postgres
//	                        │                 ctl-api  runner-api  log-ingest  builder
//	   ctl-api ──socket─────┘                 runner <install> …
//
// What was started is written down in state.json, each process by pid and start
// time, so that a supervisor that is killed loses nothing: its children run on,
// and the next `berth up` takes over those that are still what it would start,
// and ends the others. Nothing that is not written down, or does not carry the
// data folder in its environment, is ever touched.
//
// The package knows the parts only as executables, environment and /readyz; what
// they do is theirs.
package up
