// Package build makes artifacts of sources: it fetches a git commit, or takes
// the archive that the agent unpacked, checks what is in it, and leaves the
// artifact in out/artifact, which the agent packs and pushes.
//
// The same source gives the same files: nothing is generated, and what differs
// between two checkouts or belongs to somebody's own run (.git, caches, state,
// plans, local settings) is left out.
package build
