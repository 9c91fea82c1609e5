// Package evidence is the form of an evidence folder: what a runner exports for an
// auditor, with a signed index. It checks such a folder offline; package
// runner/evidence makes one.
package evidence
