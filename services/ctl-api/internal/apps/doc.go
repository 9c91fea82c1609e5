// Package apps turns app folders into configs, builds and releases.
//
//	bundle ──read──▶ appconfig.App ──itemsOf──▶ items ─┐
//	rows (components, builds, newest config) ──────────┴─decide──▶ Decision ──▶ rows, in one transaction
//
// What is built is decided purely (decide.go) and written thinly (sync.go). The
// builds themselves, and the release that their last one makes, are builder's.
package apps
