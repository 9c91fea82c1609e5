// Package oci packs, stores, moves, verifies and unpacks Berth's artifacts.
//
// Whatever travels from a vendor to an install (a Terraform module, an
// uploaded source tree, a config bundle, a sealed plan) travels as an OCI 1.1
// image manifest whose artifactType names its kind:
//
//	manifest  artifactType application/vnd.berth.<kind>.v1, annotations
//	├─ config   the empty descriptor, "{}"
//	└─ layers   tar.gz trees (Pack, Unpack) or opaque bytes (PutBlob, GetBlob)
//
// The same directory always packs to the same digest, so "is it the same
// artifact?" is a comparison of digests everywhere else in Berth.
//
//	Pack ──▶ Layout ──Push──▶ registry ──Pull──▶ Layout ──Verify──▶ Unpack
//	                              └─────Copy────▶ registry
//
// A Layout is an OCI image layout directory: the registry that an install
// keeps for itself. Nothing read from a registry, a layout or an archive is
// trusted: every byte is hashed on its way in, Verify hashes it again before
// it is used, and Unpack treats archives as hostile.
//
// Who may push and pull is decided by the registry; which digest is the right
// one, by the capsule. Neither is this package's business.
package oci
