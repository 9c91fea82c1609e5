package offers

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// maxChanges is how many of the customer's changes of vendor keys are kept until the agent
// has recorded them. Those that are forgotten are recorded as what they came to.
const maxChanges = 100

// KeyChange is what one command of the customer made of the vendor's keys.
type KeyChange struct {
	ID string    `json:"id"`
	By string    `json:"by"`
	At time.Time `json:"at"`
	// Vendor is the whole of it from then on; nil: no key is pinned.
	Vendor *datadir.Vendor `json:"vendor"`
	// Rotation is what the old key signed, when it was a rotation.
	Rotation *capsule.Envelope `json:"rotation,omitempty"`
}

type keyChanges struct {
	Changes []KeyChange `json:"changes"`
}

// KeyChanges are the last of them, the oldest first.
func (s Store) KeyChanges() ([]KeyChange, error) {
	var file keyChanges
	if _, err := datadir.ReadJSON(s.Dir.VendorKeyChanges(), &file); err != nil {
		return nil, fmt.Errorf("changes of vendor keys: %w", err)
	}
	return file.Changes, nil
}

// WillPin writes down a change that the caller makes next, for the agent to record.
func (s Store) WillPin(c KeyChange) error {
	list, err := s.KeyChanges()
	if err != nil {
		return err
	}
	c.ID = rand.Text()
	list = append(list, c)
	return datadir.WriteJSON(s.Dir.VendorKeyChanges(), keyChanges{list[max(0, len(list)-maxChanges):]})
}

// Unrecorded decides what the chain still has to be told of the vendor's keys. said is
// what it says, now what trust.json pins, and changes are what commands wrote down before
// each change: the last ones may not be made yet, or never were.
func Unrecorded(said *chain.VendorKeys, now *datadir.Vendor, changes []KeyChange) ([]chain.VendorKeys, error) {
	pinned, err := keysOf(now)
	if err != nil {
		return nil, err
	}
	var before chain.VendorKeys
	if said != nil {
		before = *said
		last := slices.IndexFunc(changes, func(c KeyChange) bool { return c.ID == said.Change })
		changes = slices.DeleteFunc(slices.Clone(changes[last+1:]), func(c KeyChange) bool { return last < 0 && c.At.Before(said.At) })
	}
	var list []chain.VendorKeys
	made := 0
	for _, c := range changes {
		next, err := keysOf(c.Vendor)
		if err != nil {
			return nil, err
		}
		next.Change, next.By, next.At, next.Rotation = c.ID, c.By, c.At.UTC(), c.Rotation
		if list = append(list, next); same(next, pinned) {
			made = len(list)
		}
	}
	list = list[:made]
	if made == 0 && !same(before, pinned) { // changed by another way than the command
		pinned.Change, pinned.At = before.Change, before.At
		list = append(list, pinned)
	}
	var untold []chain.VendorKeys
	for _, next := range list {
		if same(before, next) { // the command was repeated
			continue
		}
		next.Added, next.Removed = missing(next.Pinned, before), missing(before.Pinned, next)
		untold = append(untold, next)
		before = next
	}
	return untold, nil
}

// keysOf is what pins a vendor's keys, for the chain.
func keysOf(v *datadir.Vendor) (k chain.VendorKeys, err error) {
	k.Pinned = []chain.VendorKey{}
	if v == nil {
		return k, nil
	}
	k.AppID, k.AdHocScripts = v.AppID, v.AdHocScripts
	keys, err := v.Parse()
	for i, key := range keys {
		k.Pinned = append(k.Pinned, chain.VendorKey{KeyID: key.ID, Key: strings.TrimSpace(v.Keys[i])})
	}
	return k, err
}

func same(a, b chain.VendorKeys) bool {
	return a.AppID == b.AppID && a.AdHocScripts == b.AdHocScripts && len(missing(a.Pinned, b)) == 0 && len(missing(b.Pinned, a)) == 0
}

// missing are the ids of keys that k does not pin.
func missing(keys []chain.VendorKey, k chain.VendorKeys) (ids []string) {
	for _, key := range keys {
		if !k.Pins(key.KeyID) {
			ids = append(ids, key.KeyID)
		}
	}
	return ids
}

// tellPins brings what the chain does not say of the vendor's keys into it. mu is held.
func (g *Gate) tellPins(ctx context.Context) error {
	trust, err := g.Dir.LoadTrust()
	if err != nil {
		return err
	}
	changes, err := g.KeyChanges()
	if err != nil {
		return err
	}
	list, err := Unrecorded(g.said(), trust.Vendor, changes)
	if err != nil {
		return err
	}
	if len(list) > 0 { // what the keys of before revoked stands before the next ones
		if err := g.tellRevoked(ctx); err != nil {
			return err
		}
	}
	for _, keys := range list {
		if err := g.Append(ctx, pinRecord(keys)); err != nil {
			return err
		}
		g.told = &keys
		if g.Said != nil {
			g.then = g.Said()
		}
	}
	return nil
}

// said is what the chain was told of the vendor's keys, or says now if that is something
// else than just after it was told. mu is held.
func (g *Gate) said() *chain.VendorKeys {
	if g.Said == nil {
		return g.told
	}
	if now := g.Said(); now != g.then {
		g.told, g.then = now, now
	}
	return g.told
}

func pinRecord(keys chain.VendorKeys) chain.Record {
	r := chain.Record{Actor: "customer", Kind: chain.Event, VendorKeys: &keys}
	switch {
	case keys.Rotation != nil:
		r.What, r.Result = "the vendor's key was replaced: the old one signed for the new one", "rotated"
	case len(keys.Pinned) == 0:
		r.What, r.Result = "no vendor key is pinned any more: releases are taken that nobody signed", "removed"
	case len(keys.Added) > 0:
		r.What, r.Result = "a key of the vendor was pinned", "pinned"
	case len(keys.Removed) > 0:
		r.What, r.Result = "a key of the vendor was removed", "removed"
	default:
		r.What, r.Result = "what the vendor's keys are for was changed", "changed"
	}
	r.Detail = "by " + cmp.Or(keys.By, "nobody that the runner knows: trust.json was found changed")
	if len(keys.Added) > 0 {
		r.Detail += "; added " + strings.Join(keys.Added, ", ")
	}
	if len(keys.Removed) > 0 {
		r.Detail += "; removed " + strings.Join(keys.Removed, ", ")
	}
	return r
}

func pins(keys []consent.Key, id string) bool {
	return slices.ContainsFunc(keys, func(k consent.Key) bool { return k.ID == id })
}
