package chain

import (
	"cmp"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
)

// Vouched is from when to when a key stands behind records of a chain, as far as the
// chain tells. Times are those of the chain's writer.
type Vouched struct {
	KeyID string `json:"key_id"`
	// As is writer (it signed these records), recovery (its signature puts machines in
	// their place), dispatch (its orders were obeyed), consent (it agreed to effects) or vendor
	// (releases that it signed were taken; Records counts acceptances and revocations).
	As string `json:"as"`
	// Holder is who a consent key belongs to.
	Holder   string    `json:"holder,omitempty"`
	FirstSeq int64     `json:"first_seq"`
	LastSeq  int64     `json:"last_seq"`
	From     time.Time `json:"from"`
	Until    time.Time `json:"until"`
	Records  int64     `json:"records"`
	EndedBy  int64     `json:"ended_by,omitempty"` // record of the handover or of the keys that ended it
	// PinnedBy and RemovedBy are who pinned and removed a vendor key; empty where the runner
	// found its trust changed. ReplacedBy is the key that the old one signed for.
	PinnedBy   string `json:"pinned_by,omitempty"`
	RemovedBy  string `json:"removed_by,omitempty"`
	ReplacedBy string `json:"replaced_by,omitempty"`
	Unchecked  bool   `json:"unchecked,omitempty"` // its signatures were not checked here
}

// vouching collects who stands behind what.
type vouching struct{ keys []*Vouched }

func (v *vouching) note(as, keyID, holder string, r Record) *Vouched {
	i := slices.IndexFunc(v.keys, func(k *Vouched) bool { return k.As == as && k.KeyID == keyID && k.EndedBy == 0 })
	if i < 0 {
		v.keys = append(v.keys, &Vouched{KeyID: keyID, As: as, FirstSeq: r.Seq, From: r.Time})
		i = len(v.keys) - 1
	}
	k := v.keys[i]
	k.Holder, k.LastSeq, k.Until, k.Records = cmp.Or(holder, k.Holder), r.Seq, r.Time, k.Records+1
	return k
}

// end ends those of a kind that keep does not name.
func (v *vouching) end(as string, seq int64, keep func(keyID string) bool) {
	for _, k := range v.keys {
		if k.As == as && k.EndedBy == 0 && !keep(k.KeyID) {
			k.EndedBy = seq
		}
	}
}

// record takes what a good record says. signed: its signature was checked; checked: those
// that it carries were.
func (v *vouching) record(r Record, signed, checked bool) {
	if r.Handover != nil {
		v.end("writer", r.Seq, func(keyID string) bool { return keyID == r.KeyID })
	}
	v.note("writer", r.KeyID, "", r).Unchecked = !signed
	if r.Keys != nil {
		if key, err := capsule.ParsePublicKey(r.Keys.Recovery); err == nil {
			v.end("recovery", r.Seq, func(keyID string) bool { return keyID == capsule.KeyID(key) })
			v.note("recovery", capsule.KeyID(key), "", r).Unchecked = true
		}
		v.end("dispatch", r.Seq, func(keyID string) bool { return slices.Contains(r.Keys.Dispatch, keyID) })
		for _, keyID := range r.Keys.Dispatch {
			v.note("dispatch", keyID, "", r).Unchecked = true
		}
	}
	for _, k := range v.keys { // what a record named stands until another one ends it
		if (k.As == "recovery" || k.As == "dispatch") && k.EndedBy == 0 {
			k.LastSeq, k.Until = r.Seq, r.Time
		}
	}
	v.vendorKeys(r, checked)
	if r.Consent == nil {
		return
	}
	for i, keyID := range r.Consent.Keys {
		holder := ""
		if len(r.Consent.By) == len(r.Consent.Keys) {
			holder = r.Consent.By[i]
		}
		v.note("consent", keyID, holder, r).Unchecked = true
	}
}

// list is all of them in the order in which they came.
func (v *vouching) list() (list []Vouched) {
	for _, k := range v.keys {
		list = append(list, *k)
	}
	slices.SortStableFunc(list, func(a, b Vouched) int { return cmp.Compare(a.FirstSeq, b.FirstSeq) })
	return list
}
