// Package stacks owns how a runner gets into an install: the stack's versions,
// the runner's row, its enrolment secrets, and handing all that to the process
// that starts the runner.
//
// With the local stack that is the supervisor of `berth up`, over a unix socket.
// The secrets are made in the transaction that makes the install, kept sealed
// until the supervisor has taken them over, and forgotten then; a River job
// makes the call, again and again until it works.
//
// With the kubernetes stack it is the customer, with a code that is shown once
// (pkg/enrolcode); only hashes of its secrets stay here.
package stacks
