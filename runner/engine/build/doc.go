// Package build makes artifacts of sources: it fetches a git commit, or takes
// the archive that the agent unpacked, checks what is in it, and leaves the
// artifact in out/artifact, which the agent packs and pushes. A component type
// whose artifact is the directory as it is uses Folder in its own package.
//
// The same source gives the same files: nothing is generated, and what differs
// between two checkouts or belongs to somebody's own run (.git, caches, state,
// plans, local settings) is left out.
package build
