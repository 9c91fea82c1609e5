// Package offer is how a vendor signs what it offers: a Statement names one release of
// one app by the digest of its manifest (jobspec.Manifest), which names everything that
// the release brings. The vendor's key signs it in the vendor's CI; the control plane
// stores the signed bytes and passes them on, and cannot make any.
//
// A Rotation is the old key's word that another key signs from now on. A Revocation is the
// vendor's word that a release must not be installed any more.
//
// All are canonical JSON in an envelope that package consent verifies: by an Ed25519 key
// (DSSE) or an SSH key (SSHSIG). This package knows their form. Whether a release may be
// accepted is decided by the runner; History checks afterwards, from its chain, that what it
// took was signed by keys that were pinned at that time.
package offer
