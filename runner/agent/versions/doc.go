// Package versions keeps the versions of the runner that a runner update brought, and
// says which of them a start runs. It knows nothing of orders: what it installs was
// verified before (see Open), and who tries it out is the launcher of package main.
//
//	DATA/versions/
//	  state.json     State: the current version, one on trial, why the last trial failed
//	  lock           held while state.json is changed
//	  <digest>/      berth-runner, berth-engine and berth-policy, which nobody may write
//
// A version is on trial from the apply of its update until its agent has taken part in
// everything that an agent must be able to do. state.json is replaced as a whole, so a
// crash at any moment leaves the version before or the one after:
//
//	           Begin                 Confirm
//	current ──────────▶ current+trial ──────▶ current = trial
//	                         │ Fail: not confirmed in time, or ended MaxBoots times
//	                         ▼
//	                    current, failed
package versions
