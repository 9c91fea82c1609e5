package offer

import (
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/consent"
)

// History checks what the records of an install's chain carry of the vendor's signatures,
// against the keys that were pinned at each place. Its Check is good for
// chain.VerifyOptions. The zero History begins before the first record.
type History struct {
	// keys are those that count; nil as long as the chain has not said: earlier runners
	// recorded none.
	keys []consent.Key
	app  string
	said bool
}

// Check says what is wrong with a record.
func (h *History) Check(r chain.Record) error {
	if r.Accepted != nil { // records were given up: what they said of keys is not known here
		*h = History{}
	}
	if r.VendorKeys != nil {
		return h.pinned(*r.VendorKeys)
	}
	if !h.said || r.Offer == nil || r.Offer.Revoked && r.Offer.Signed == nil { // the customer's word needs no signature
		return nil
	}
	if r.Offer.Signed == nil {
		return errors.New("accepts a release and carries no statement")
	}
	if r.Offer.Revoked {
		s, err := OpenRevocation(h.keys, *r.Offer.Signed)
		if err != nil {
			return fmt.Errorf("carries a revocation that no vendor key of that time signed: %w", err)
		}
		if s.AppID != h.app || s.Number != r.Offer.Release || s.ReleaseID != r.Offer.ReleaseID || s.KeyID != r.Offer.KeyID {
			return errors.New("carries the revocation of another release")
		}
		return nil
	}
	s, err := Open(h.keys, *r.Offer.Signed)
	if err != nil {
		return fmt.Errorf("accepts a release that no vendor key of that time signed: %w", err)
	}
	if s.AppID != h.app || s.Number != r.Offer.Release || s.ReleaseID != r.Offer.ReleaseID || s.Manifest != r.Offer.Manifest || s.KeyID != r.Offer.KeyID {
		return errors.New("accepts a release and carries the statement of another")
	}
	return nil
}

// pinned takes the keys that count from a record on.
func (h *History) pinned(now chain.VendorKeys) error {
	keys := make([]consent.Key, 0, len(now.Pinned))
	for _, p := range now.Pinned {
		key, err := consent.ParseKey(p.Key)
		if err != nil {
			return fmt.Errorf("pins a vendor key that is none: %w", err)
		}
		if key.ID != p.KeyID {
			return fmt.Errorf("pins vendor key %s under the id %.80q", key.ID, p.KeyID)
		}
		keys = append(keys, key)
	}
	if now.Rotation != nil && h.said {
		r, err := OpenRotation(h.keys, *now.Rotation)
		if err != nil {
			return fmt.Errorf("accepts a rotation that no vendor key of that time signed: %w", err)
		}
		if r.AppID != now.AppID || !now.Pins(r.NewKeyID) || now.Pins(r.OldKeyID) {
			return fmt.Errorf("accepts a rotation to key %s, and pins others", r.NewKeyID)
		}
	}
	h.keys, h.app, h.said = keys, now.AppID, true
	return nil
}
