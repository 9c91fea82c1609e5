package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/offer"
	"github.com/berth-dev/berth/runner/agent/offers"
)

// Each command that changes the vendor's keys leaves for the agent what the chain is told:
// who did it, what counts from then on, and what the old key signed.
func TestVendorKeyCommandsAreRecorded(t *testing.T) {
	t.Parallel()
	d := newCustomer(t)
	file := func(name string, content []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pair := func() (consent.Signer, string) {
		public, private, err := capsule.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		return consent.Ed25519Signer(private), capsule.EncodePublicKey(public)
	}
	old, oldText := pair()
	next, nextText := pair()
	env, err := offer.SignRotation(old, offer.Rotation{OrgID: "org1", AppID: "app_1", NewKeyID: next.Key.ID, NewKey: nextText, Issued: time.Now().UTC()})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(env)
	if err != nil {
		t.Fatal(err)
	}
	rotation := file("rotation.json", raw)

	d.says(0, "takes releases of app app_1", "trust", "vendor-key", "add", file("old.pub", []byte(oldText)), "--app", "app_1")
	d.says(1, "nothing was changed", "trust", "vendor-key", "accept", rotation)
	d.says(0, "from now on the new key counts", "trust", "vendor-key", "accept", rotation, "--yes", next.Key.ID)
	d.says(1, "trusts no vendor key", "trust", "vendor-key", "remove", old.Key.ID)
	d.says(0, "no key is left", "trust", "vendor-key", "remove", next.Key.ID)

	changes, err := (offers.Store{Dir: d.dir}).KeyChanges()
	if err != nil {
		t.Fatal(err)
	}
	trust, err := d.dir.LoadTrust()
	if err != nil {
		t.Fatal(err)
	}
	list, err := offers.Unrecorded(nil, trust.Vendor, changes)
	if err != nil || len(list) != 3 {
		t.Fatalf("the chain is told %+v, %v, want three changes", list, err)
	}
	var h offer.History
	for i, k := range list {
		if k.By != osUser() || k.At.IsZero() || k.Change == "" {
			t.Errorf("change %d: %+v", i+1, k)
		}
		if err := h.Check(chain.Record{VendorKeys: &k}); err != nil {
			t.Errorf("change %d: %v", i+1, err)
		}
	}
	if !list[0].Pins(old.Key.ID) || list[1].Rotation == nil || !list[1].Pins(next.Key.ID) || list[1].Pins(old.Key.ID) || len(list[2].Pinned) > 0 {
		t.Errorf("the chain is told %+v", list)
	}
}
