// Package helm plans and applies Helm charts.
//
//	plan   in/artifact + values ─▶ render on the live server ─▶ dry run per object ─▶ out/pinned, out/plan.*
//	apply  in/pinned ─▶ claim ─▶ dry run again, compare ─▶ literal chart ─▶ install, upgrade or uninstall
//
// A plan renders with Helm's own engine, the way an install or an upgrade would,
// and pins what came out. An apply makes a literal chart of it: the same sources
// with every template mark escaped, under the chart's own name, version and
// values. Helm's own actions install it, so that releases, history and hooks are
// Helm's; what they write goes through a client that checks the fence, writes
// only what the plan showed, and names uid and resourceVersion.
//
// # Releases that an engine left unfinished
//
// While an apply runs and waits, its release is pending-install,
// pending-upgrade or uninstalling, as with `helm upgrade --wait`. A killed apply
// leaves it so. The next plan looks through the history for the revision that
// was deployed last (history.go) and plans from there; it says what it found.
// The next apply marks what is stuck as failed and continues, by itself.
//
//	nothing, or nothing ever deployed ─▶ install    deployed below ─▶ upgrade
//	uninstalling, to be removed       ─▶ uninstall  uninstalling, wanted ─▶ install
package helm
