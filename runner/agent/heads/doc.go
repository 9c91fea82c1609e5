// Package heads notices that the install's chain was cut, replaced or removed: it
// keeps its head a second time, and compares the chain with every head that
// somebody kept. What to do about it is the customer's to decide.
//
// The order of the writes makes a crash harmless. The record is on disk before
// its head is kept, here or at the control plane, so a kept head is never ahead
// of the chain:
//
//	crash after the record          chain ahead of the copy      fine, the copy follows
//	crash while the head is kept    one of two slots is damaged  fine, the other one counts
//	crash after enrolment           no chain, kept head is 0     fine, nothing was recorded yet
//	chain behind a kept head        only by another hand         mutations stop
package heads
