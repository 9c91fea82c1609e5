// Package keys holds what ctl-api seals and signs with for an org: the ring of
// its keys, what each sealed column of a row is sealed for, signatures with the
// dispatch key, and the org's own chain, which is signed with it.
//
//	master key ──▶ the org's identity ──▶ opens and closes what is sealed at rest
//	                                        └─▶ dispatch key ──▶ orders, settings, the org's chain
//
// Who may ask for any of it is decided by package access.
package keys
