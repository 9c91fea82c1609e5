package chain

import (
	"encoding/json"

	"github.com/berth-dev/berth/pkg/capsule"
)

// Offer is what an event says of a release that the vendor signed: that the install
// accepted it, or that the customer revoked it.
type Offer struct {
	ReleaseID string `json:"release_id,omitempty"`
	Release   int    `json:"release"` // its number
	// Manifest is the digest of all that the release brings, Statement that of what was
	// signed, KeyID the vendor's key. Signed is all of it.
	Manifest  string            `json:"manifest,omitempty"`
	Statement string            `json:"statement,omitempty"`
	KeyID     string            `json:"key_id,omitempty"`
	Signed    *capsule.Envelope `json:"signed,omitempty"`
	// Count is the length of Items, also when Items was left out for its size.
	Count int         `json:"count,omitempty"`
	Items []OfferItem `json:"items,omitempty"`
	// Revoked: it is not taken any more. By said so for the customer; where the vendor
	// signed the revocation, Signed is that.
	Revoked bool   `json:"revoked,omitempty"`
	By      string `json:"by,omitempty"`
}

// OfferItem is one thing that the release brings.
type OfferItem struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// Fitting leaves out items that are too many for a record.
func (o Offer) Fitting() Offer {
	o.Count = len(o.Items)
	if raw, err := json.Marshal(o.Items); err != nil || len(raw) > maxScripts {
		o.Items = nil
	}
	return o
}

// Whole reports whether the items were not left out.
func (o Offer) Whole() bool { return o.Count == len(o.Items) }
