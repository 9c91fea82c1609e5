package offer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/offer"
)

// What a runner took has to be signed by a key that its chain pins at that place.
func TestHistory(t *testing.T) {
	t.Parallel()
	pair := func() (consent.Signer, chain.VendorKey) {
		public, private, err := capsule.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		return consent.Ed25519Signer(private), chain.VendorKey{KeyID: capsule.KeyID(public), Key: capsule.EncodePublicKey(public)}
	}
	old, oldKey := pair()
	next, nextKey := pair()
	thief, thiefKey := pair()
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	manifest := capsule.DigestBytes([]byte("manifest"))
	pin := func(keys ...chain.VendorKey) chain.Record {
		return chain.Record{VendorKeys: &chain.VendorKeys{AppID: "app_1", Pinned: keys}}
	}
	accept := func(by consent.Signer, edit func(*chain.Offer)) chain.Record {
		env, err := offer.Sign(by, offer.Statement{
			OrgID: "org_1", AppID: "app_1", App: "hello", ReleaseID: "rel_3", Number: 3, Manifest: manifest, Issued: at, Expires: at.Add(time.Hour),
		})
		if err != nil {
			t.Fatal(err)
		}
		o := chain.Offer{ReleaseID: "rel_3", Release: 3, Manifest: manifest, KeyID: by.Key.ID, Signed: &env}
		edit(&o)
		return chain.Record{Offer: &o}
	}
	revoke := func(by consent.Signer, number int) chain.Record {
		env, err := offer.Revoke(by, offer.Revocation{OrgID: "org_1", AppID: "app_1", App: "hello", ReleaseID: "rel_3", Number: 3, Reason: "recalled", Issued: at})
		if err != nil {
			t.Fatal(err)
		}
		return chain.Record{Offer: &chain.Offer{ReleaseID: "rel_3", Release: number, KeyID: by.Key.ID, Signed: &env, Revoked: true}}
	}
	rotate := func(by consent.Signer, to chain.VendorKey, pinned ...chain.VendorKey) chain.Record {
		env, err := offer.SignRotation(by, offer.Rotation{OrgID: "org_1", AppID: "app_1", NewKeyID: to.KeyID, NewKey: to.Key, Issued: at})
		if err != nil {
			t.Fatal(err)
		}
		return chain.Record{VendorKeys: &chain.VendorKeys{AppID: "app_1", Pinned: pinned, Rotation: &env}}
	}
	asItIs := func(*chain.Offer) {}
	for _, tc := range []struct {
		name    string
		records []chain.Record
		problem string // of the last one
	}{
		{name: "a release by the pinned key", records: []chain.Record{pin(oldKey), accept(old, asItIs), revoke(old, 3)}},
		{name: "by the new key after a rotation", records: []chain.Record{pin(oldKey), rotate(old, nextKey, nextKey), accept(next, asItIs)}},
		{name: "before chains named keys", records: []chain.Record{accept(old, asItIs)}},
		{name: "after records were given up", records: []chain.Record{pin(oldKey), {Accepted: &chain.Acceptance{Reason: "backup"}}, accept(next, asItIs)}},
		{name: "the customer's own revocation", records: []chain.Record{pin(oldKey), {Offer: &chain.Offer{Release: 3, Revoked: true, By: "ada"}}}},
		{name: "a release by another key", records: []chain.Record{pin(oldKey), accept(thief, asItIs)}, problem: "accepts a release that no vendor key"},
		{name: "by the old key after a rotation", records: []chain.Record{pin(oldKey), rotate(old, nextKey, nextKey), accept(old, asItIs)}, problem: "accepts a release that no vendor key"},
		{name: "when no key is pinned any more", records: []chain.Record{pin(oldKey), pin(), accept(old, asItIs)}, problem: "accepts a release that no vendor key"},
		{name: "without a statement", records: []chain.Record{pin(oldKey), accept(old, func(o *chain.Offer) { o.Signed = nil })}, problem: "carries no statement"},
		{name: "with another number", records: []chain.Record{pin(oldKey), accept(old, func(o *chain.Offer) { o.Release = 4 })}, problem: "the statement of another"},
		{name: "with another manifest", records: []chain.Record{pin(oldKey), accept(old, func(o *chain.Offer) { o.Manifest = capsule.DigestBytes(nil) })}, problem: "the statement of another"},
		{name: "a revocation by another key", records: []chain.Record{pin(oldKey), revoke(thief, 3)}, problem: "carries a revocation that no vendor key"},
		{name: "a revocation of another release", records: []chain.Record{pin(oldKey), revoke(old, 4)}, problem: "the revocation of another"},
		{name: "a rotation by a thief's key", records: []chain.Record{pin(oldKey), rotate(thief, nextKey, nextKey)}, problem: "a rotation that no vendor key"},
		{name: "a rotation to another key than was pinned", records: []chain.Record{pin(oldKey), rotate(old, nextKey, thiefKey)}, problem: "and pins others"},
		{name: "a rotation that keeps the old key", records: []chain.Record{pin(oldKey), rotate(old, nextKey, oldKey, nextKey)}, problem: "and pins others"},
		{name: "a key under another id", records: []chain.Record{pin(chain.VendorKey{KeyID: oldKey.KeyID, Key: thiefKey.Key})}, problem: "under the id"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var h offer.History
			for i, r := range tc.records {
				err := h.Check(r)
				last := i == len(tc.records)-1
				if (err != nil) != (last && tc.problem != "") || err != nil && !strings.Contains(err.Error(), tc.problem) {
					t.Errorf("record %d: %v, want %q", i+1, err, tc.problem)
				}
			}
		})
	}
}
