package chain

import (
	"crypto/ed25519"
	"fmt"
	"maps"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
)

// HandoverType is the payload type of a signed Handover.
const HandoverType = "application/vnd.berth.handover.v1+json"

// Keys name who writes a chain, who may hand it to another writer, and whose
// orders the writer obeys. A chain that names them does so in its first record, or
// as soon as there is a recovery key.
type Keys struct {
	// Machine is the writer's Ed25519 key, Recovery the one that signs handovers, in
	// base64.
	Machine  string `json:"machine"`
	Recovery string `json:"recovery,omitempty"`
	// Dispatch are the ids of the keys whose orders are obeyed.
	Dispatch []string `json:"dispatch,omitempty"`
	// Vouched is the recovery key's signature for Machine, see package recovery. Only
	// with it does a machine that takes over know this writer from a made-up one.
	Vouched *capsule.Envelope `json:"vouched,omitempty"`
}

// Handover lets another machine continue the work, and the chain, of the one
// before. The customer signs it with the recovery key.
type Handover struct {
	OrgID     string `json:"org_id"`
	InstallID string `json:"install_id"`
	RunnerID  string `json:"runner_id"`
	// OldMachine is the id of the key of the machine that is gone.
	OldMachine string `json:"old_machine"`
	// NewMachine is the Ed25519 key of the one that takes over, in base64.
	NewMachine string `json:"new_machine"`
	// SealRecipient is what is sealed to from now on.
	SealRecipient string `json:"seal_recipient"`
	// ChainHead is where the chain of the old machine ended.
	ChainHead Head      `json:"chain_head"`
	SignedAt  time.Time `json:"signed_at"`
}

// takeOver lets another key write from rec on, when rec carries a handover that
// the recovery key signed which the chain has named, from the key that wrote the
// record before, at just this place.
func (v *verifier) takeOver(rec Record) error {
	if v.recovery == nil {
		return fmt.Errorf("is a handover, and no record before it names a recovery key")
	}
	var h Handover
	if _, err := capsule.Verify(map[string]ed25519.PublicKey{capsule.KeyID(v.recovery): v.recovery}, HandoverType, *rec.Handover, &h); err != nil {
		return fmt.Errorf("is a handover that the recovery key has not signed: %w", err)
	}
	next, err := capsule.ParsePublicKey(h.NewMachine)
	switch {
	case err != nil:
		return fmt.Errorf("is a handover to no key: %w", err)
	case h.InstallID != rec.Chain || h.ChainHead != v.report.Head || h.OldMachine != v.writer:
		return fmt.Errorf("is a handover for another place in a chain")
	case capsule.KeyID(next) != rec.KeyID:
		return fmt.Errorf("is a handover to key %.80q, and key %.80q wrote it", capsule.KeyID(next), rec.KeyID)
	}
	v.options.Keys = maps.Clone(v.options.Keys)
	v.options.Keys[rec.KeyID] = next
	v.report.Handovers++
	return nil
}

// names takes the recovery key that a record names; the first one stays, unless the last
// writer of the chain vouches for changes.
func (v *verifier) names(rec Record) {
	if rec.Keys == nil || rec.Keys.Recovery == "" || v.recovery != nil && !v.options.changes {
		return
	}
	key, err := capsule.ParsePublicKey(rec.Keys.Recovery)
	if err != nil {
		v.bad("names a recovery key that is none: %v", err)
		return
	}
	v.recovery = key
}
