// Package image makes container images of executables and Debian packages
// without Docker: reproducible OCI images for several architectures, each with
// its SBOM as a referrer, in an OCI layout on disk or in a registry.
//
//	executables ─┐
//	packages ────┼─▶ Tree ─▶ layer ─┐
//	CA roots ────┘                  ├─▶ image ─▶ index (one image per architecture)
//	                       Labels ──┘     ▲
//	build info, package list ─▶ SBOM ─────┘ subject
//
// The same files, version and time make the same digests: trees are sorted,
// every owner is root, every time is the commit's. Which images there are is
// not decided here but in dev/images.
package image
