// Package sync is what `berth sync` does: it reads and packs an app folder with
// what it takes from elsewhere, uploads it, says what a sync would do, and
// follows the builds until there is a release. The command only asks and prints.
package sync
