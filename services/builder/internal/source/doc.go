// Package source says what exactly a build is made from: it reads the source
// that a sync wrote down, checks it, and finds the commit behind a branch, a
// tag or an abbreviation of the default branch, the digest behind the tag of an
// image, and the version and digest of a chart in a range.
//
//	local  the digest of an uploaded archive: exact as it is
//	git    repository, ref, directory ──Resolver──▶ commit
//	image  host/path, tag             ──Resolver──▶ digest
//	chart  repository, name, version  ──Resolver──▶ version and digest
//
// A vendor's app folder chooses the repository, so the address is treated as
// hostile: only https is followed, and file only where the operator allows it.
// Registries on this machine are asked over plain http. Fetching the commit or
// a public image is the work of the Build Runner's engine. A packed chart is
// downloaded here, unopened, and a private image copied: so credentials, which
// package keyring has, never leave the builder.
package source
