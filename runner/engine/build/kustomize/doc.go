// Package kustomize makes a manifest of a kustomization, with kustomize's own
// library, and without anything that kustomize would run or fetch by itself.
//
//	source ─▶ follow: find remote bases and charts ─▶ kustomize ─▶ put templates back
//
// Kustomize sees no disk. It reads from a [tree], in which the source, and each
// repository that a base is in, are mounted; what stands elsewhere is not there,
// and neither is what a symlink leads to outside of its mount. Before it runs,
// every kustomization that it will read is followed: remote bases are fetched
// (Config.Repository, Config.File) and charts rendered (Config.Chart), and both
// stand in the tree then. What is left with an address in it, and every plugin
// that is not built in, is refused, so that kustomize has nothing to fetch, no
// git and no helm to start.
//
// Kustomize reads YAML, and templates are rendered later, by the customer's
// runner. So each {{…}} of a file is a word while kustomize works, and stands in
// the manifest again afterwards, in the quotes that it had. A template can be a
// value or a part of one; a line that holds nothing but a template, such as
// {{ if … }}, is no YAML and is refused.
//
// The same source gives the same bytes, unless a base names a branch or a chart
// makes random values.
package kustomize
