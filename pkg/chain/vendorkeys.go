package chain

import (
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
)

// VendorKeys is what an event says of the vendor's keys: whose releases of the app count
// from this record on.
type VendorKeys struct {
	AppID string `json:"app_id,omitempty"`
	// Pinned are all of them. Without any, releases are taken that nobody signed.
	Pinned []VendorKey `json:"pinned"`
	// AdHocScripts: scripts pass too that are part of no release.
	AdHocScripts bool `json:"ad_hoc_scripts,omitempty"`
	// Added and Removed are ids of keys, against what the chain said before.
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	// Rotation is what the old key signed of the new one, when the customer accepted that.
	Rotation *capsule.Envelope `json:"rotation,omitempty"`
	// Change, By and At are of the customer's command. They are empty where the runner
	// found the file of its trust changed.
	Change string    `json:"change,omitempty"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

// VendorKey is one of the vendor's public keys.
type VendorKey struct {
	KeyID string `json:"key_id"`
	Key   string `json:"key"` // as package consent reads it
}

// Pins reports whether a key is among those that count.
func (k VendorKeys) Pins(keyID string) bool {
	return slices.ContainsFunc(k.Pinned, func(p VendorKey) bool { return p.KeyID == keyID })
}

// VendorKeys returns what the chain said last of the vendor's keys, nil for nothing.
func (w *Writer) VendorKeys() *VendorKeys {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.vendor
}

// vendorKeys takes what a record says of the vendor's keys. checked: somebody checked
// what they signed.
func (v *vouching) vendorKeys(r Record, checked bool) {
	if now := r.VendorKeys; now != nil {
		for _, k := range v.keys {
			if k.As == "vendor" && k.EndedBy == 0 && !now.Pins(k.KeyID) {
				k.EndedBy, k.RemovedBy = r.Seq, now.By
				if now.Rotation != nil && len(now.Added) == 1 {
					k.ReplacedBy = now.Added[0]
				}
			}
		}
		for _, p := range now.Pinned {
			known := slices.ContainsFunc(v.keys, func(k *Vouched) bool { return k.As == "vendor" && k.KeyID == p.KeyID && k.EndedBy == 0 })
			if !known {
				v.keys = append(v.keys, &Vouched{As: "vendor", KeyID: p.KeyID, FirstSeq: r.Seq, From: r.Time, PinnedBy: now.By, Unchecked: !checked})
			}
		}
	}
	for _, k := range v.keys {
		if k.As != "vendor" || k.EndedBy > 0 {
			continue
		}
		k.LastSeq, k.Until = r.Seq, r.Time
		if r.Offer != nil && r.Offer.KeyID == k.KeyID {
			k.Records++
		}
	}
}
