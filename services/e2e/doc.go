// Package e2e drives the real executables, through `berth` and the public API,
// on one machine: what a user would do, and what would break a user's install.
//
// TestMain builds nothing: the executables are those of BERTH_LIBEXEC, which
// `make test` sets. Each test that needs a system of its own starts one with
// `berth up` on a data folder and four ports of its own, and ends it.
package e2e
