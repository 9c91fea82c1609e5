package agent

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/recovery"
	"github.com/berth-dev/berth/runner/agent/consents"
	"github.com/berth-dev/berth/runner/agent/offers"
	"github.com/berth-dev/berth/runner/agent/roles"
	"github.com/berth-dev/berth/runner/agent/scripts"
)

// known is what a copy of the chain tells a machine that takes over.
type known struct {
	last time.Time // of the last record
	set  scripts.Restored
	// roles are those that were switched, all off.
	roles roles.Document
	// rules are the newest standing rules that were in force: older ones stay refused.
	rules consents.Floor
	// releases are the vendor's that were accepted and revoked.
	releases offers.Restored
}

// knownScripts reads which scripts are accepted, and which roles were on, out of a copy of the install's
// chain, whose hashes the caller has checked. The copy comes from the control plane,
// which may not add to what is accepted: each record must be signed by a machine that
// the recovery key has signed for. Records that are left out at the end cannot be
// seen here.
func knownScripts(install string, key recovery.Public, copied []byte, now time.Time) (known, error) {
	var k known
	var records []chain.Record
	for line := range bytes.Lines(copied) {
		rec, err := chain.ParseRecord(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			return k, err
		}
		records = append(records, rec)
		k.last = rec.Time
	}
	machines := customerMachines(key, records)
	if len(machines) == 0 {
		k.set.Nothing = "the recovery key has signed for no machine that wrote the chain (berth-runner recovery vouch)"
		return k, nil
	}
	report, err := chain.Verify(bytes.NewReader(copied), chain.VerifyOptions{Chain: install, Keys: machines})
	if err != nil {
		return k, err
	}
	if !report.OK() {
		k.set.Nothing = fmt.Sprintf("the copy of the chain is not all of this install's machines: record %d %s", report.FirstBad, report.Problem)
		return k, nil
	}
	k.set, k.roles, k.rules = scripts.FromChain(records), roles.FromChain(records, now), consents.FloorFromChain(records)
	k.releases = offers.FromChain(records)
	return k, nil
}

// customerMachines are the keys that the recovery key has signed for: when it was
// made for a machine, and when it handed the install over to one. What the records
// say beyond that does not count.
func customerMachines(key recovery.Public, records []chain.Record) map[string]ed25519.PublicKey {
	machines := map[string]ed25519.PublicKey{}
	add := func(machine ed25519.PublicKey, err error) {
		if err == nil {
			machines[capsule.KeyID(machine)] = machine
		}
	}
	for _, rec := range records {
		if rec.Keys != nil && rec.Keys.Vouched != nil {
			add(recovery.VerifyMachine(key, *rec.Keys.Vouched))
		}
		if rec.Handover != nil {
			add(handedTo(key, rec))
		}
	}
	return machines
}

// handedTo is the machine that a handover of this install names.
func handedTo(key recovery.Public, rec chain.Record) (ed25519.PublicKey, error) {
	signing, err := capsule.ParsePublicKey(key.SigningKey)
	if err != nil {
		return nil, err
	}
	var h chain.Handover
	if _, err := capsule.Verify(map[string]ed25519.PublicKey{key.KeyID: signing}, chain.HandoverType, *rec.Handover, &h); err != nil {
		return nil, err
	}
	if h.InstallID != rec.Chain {
		return nil, errors.New("a handover of another install")
	}
	return capsule.ParsePublicKey(h.NewMachine)
}
