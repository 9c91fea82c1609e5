// Package recipient decides whom the control plane seals the secrets of an
// install to. runner-api says which machine is enrolled and what it brought; this
// package believes the first machine, and a later one only with a handover that
// the customer's recovery key signed. What it verified it keeps in rows that no
// other service can write, so that somebody who has taken over runner-api, or its
// database password, cannot have secrets sealed to himself.
package recipient

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/recovery"
)

// Why a recipient is believed.
const (
	// First: the first machine of the install, trusted as it came.
	First = "first"
	// RecoveryKey: the machine introduced its customer's recovery key.
	RecoveryKey = "recovery_key"
	// RecoveryChange: the recovery key signed another in its place.
	RecoveryChange = "recovery_change"
	// Handover: the recovery key signed that this machine takes over.
	Handover = "handover"
	// Consent: there is no recovery key; the customer consented to a replacement.
	Consent = "consent"
)

// Verified is whom is sealed to.
type Verified struct {
	MachineKey    string // Ed25519, base64
	SealRecipient string
	Recovery      *recovery.Public
}

// Recipients are whom a secret of the install is sealed to.
func (v Verified) Recipients() []string {
	if v.Recovery == nil {
		return []string{v.SealRecipient}
	}
	return []string{v.SealRecipient, v.Recovery.Recipient}
}

// Claim is what runner-api says.
type Claim struct {
	OrgID, InstallID, RunnerID string
	MachineKey, SealRecipient  string
	// Recovery is the customer's key, Signed the envelope that brings it.
	Recovery *recovery.Public
	Signed   json.RawMessage
	// Handover is the envelope by which the machine took its place.
	Handover json.RawMessage
	// Consented: the customer consented to a replacement that this machine used.
	Consented bool
}

// Decision is whom to seal to.
type Decision struct {
	// To is nil when nobody is believed.
	To *Verified
	// Reason is set when To is news, Evidence is what was verified for it.
	Reason   string
	Evidence json.RawMessage
	// Problem says what was not believed, for an alarm.
	Problem error
}

var errNoHandover = errors.New("a machine replaced another without a handover signed by the recovery key")

// Decide compares a claim with what was verified before, nil for nothing. It does
// no I/O.
func Decide(before *Verified, c Claim) Decision {
	if before == nil {
		return Decision{To: &Verified{MachineKey: c.MachineKey, SealRecipient: c.SealRecipient}, Reason: First}
	}
	if before.MachineKey == c.MachineKey && before.SealRecipient == c.SealRecipient {
		return decideKey(*before, c)
	}
	next := Verified{MachineKey: c.MachineKey, SealRecipient: c.SealRecipient, Recovery: before.Recovery}
	if before.Recovery == nil {
		if !c.Consented {
			return Decision{Problem: errors.New("a machine replaced another, and nobody consented")}
		}
		return Decision{To: &next, Reason: Consent}
	}
	var env capsule.Envelope
	if len(c.Handover) == 0 || json.Unmarshal(c.Handover, &env) != nil {
		return Decision{Problem: errNoHandover}
	}
	old, err := capsule.ParsePublicKey(before.MachineKey)
	if err != nil {
		return Decision{Problem: err}
	}
	_, err = recovery.VerifyHandover(*before.Recovery, env, recovery.Handover{
		OrgID: c.OrgID, InstallID: c.InstallID, RunnerID: c.RunnerID, OldMachine: capsule.KeyID(old),
		NewMachine: c.MachineKey, SealRecipient: c.SealRecipient,
	})
	if err != nil {
		return Decision{Problem: fmt.Errorf("%w: %w", errNoHandover, err)}
	}
	return Decision{To: &next, Reason: Handover, Evidence: c.Handover}
}

// decideKey looks at the recovery key that the machine brings.
func decideKey(before Verified, c Claim) Decision {
	stay := Decision{To: &before}
	if c.Recovery == nil || before.Recovery != nil && *before.Recovery == *c.Recovery {
		return stay
	}
	next := before
	next.Recovery = c.Recovery
	var env capsule.Envelope
	if err := json.Unmarshal(c.Signed, &env); err != nil {
		stay.Problem = errors.New("a recovery key came without a signature")
		return stay
	}
	want := recovery.Change{OrgID: c.OrgID, InstallID: c.InstallID, Next: *c.Recovery}
	if before.Recovery != nil {
		if err := recovery.VerifyChange(*before.Recovery, env, want); err != nil {
			stay.Problem = fmt.Errorf("another recovery key came, and the one before has not signed it: %w", err)
			return stay
		}
		return Decision{To: &next, Reason: RecoveryChange, Evidence: c.Signed}
	}
	machine, err := capsule.ParsePublicKey(before.MachineKey)
	if err == nil {
		err = recovery.VerifyIntroduction(machine, env, want)
	}
	if err == nil {
		err = c.Recovery.Check()
	}
	if err != nil {
		stay.Problem = fmt.Errorf("a recovery key came that the machine has not signed: %w", err)
		return stay
	}
	return Decision{To: &next, Reason: RecoveryKey, Evidence: c.Signed}
}
