package recovery

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
)

// ChangeType is the payload type of a signed Change.
const ChangeType = "application/vnd.berth.recovery-change.v1+json"

// ErrRefused is what is said of a handover or a change that does not hold.
var ErrRefused = errors.New("refused by the recovery key")

// Handover lets another machine take the place of the one that is there.
type Handover = chain.Handover

// Sign signs a handover.
func (k *Key) Sign(h Handover) (capsule.Envelope, error) {
	return capsule.Sign(k.signer, k.Public().KeyID, chain.HandoverType, h)
}

// VerifyHandover checks that the recovery key signed the handover to this new
// machine, and returns it. Everything in want but the time and the chain's head
// must be as it says.
func VerifyHandover(key Public, env capsule.Envelope, want Handover) (Handover, error) {
	var h Handover
	keys, err := key.keys()
	if err != nil {
		return h, err
	}
	if _, err := capsule.Verify(keys, chain.HandoverType, env, &h); err != nil {
		return h, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	for _, f := range []struct{ name, want, got string }{
		{"org_id", want.OrgID, h.OrgID}, {"install_id", want.InstallID, h.InstallID}, {"runner_id", want.RunnerID, h.RunnerID},
		{"old_machine", want.OldMachine, h.OldMachine}, {"new_machine", want.NewMachine, h.NewMachine},
		{"seal_recipient", want.SealRecipient, h.SealRecipient},
	} {
		if f.want != f.got {
			return h, fmt.Errorf("%w: the handover has %s %q, and not %q", ErrRefused, f.name, f.got, f.want)
		}
	}
	return h, nil
}

// Change makes next the recovery key of an install. The first one is signed by the
// machine's key, each later one by the recovery key before it.
type Change struct {
	OrgID     string    `json:"org_id"`
	InstallID string    `json:"install_id"`
	Next      Public    `json:"next"`
	SignedAt  time.Time `json:"signed_at"`
}

// SignChange signs a change to another key.
func (k *Key) SignChange(c Change) (capsule.Envelope, error) {
	return capsule.Sign(k.signer, k.Public().KeyID, ChangeType, c)
}

// Introduce signs the first recovery key of an install with the machine's key.
func Introduce(machine ed25519.PrivateKey, c Change) (capsule.Envelope, error) {
	public, _ := machine.Public().(ed25519.PublicKey)
	return capsule.Sign(machine, capsule.KeyID(public), ChangeType, c)
}

// VerifyIntroduction checks that the machine named its customer's first key, for
// the org and install that want names.
func VerifyIntroduction(machine ed25519.PublicKey, env capsule.Envelope, want Change) error {
	return verifyChange(map[string]ed25519.PublicKey{capsule.KeyID(machine): machine}, env, want)
}

// VerifyChange checks that the key before let the one that want names take its
// place, for the same org and install.
func VerifyChange(before Public, env capsule.Envelope, want Change) error {
	keys, err := before.keys()
	if err != nil {
		return err
	}
	return verifyChange(keys, env, want)
}

func verifyChange(keys map[string]ed25519.PublicKey, env capsule.Envelope, want Change) error {
	var c Change
	if _, err := capsule.Verify(keys, ChangeType, env, &c); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if c.OrgID != want.OrgID || c.InstallID != want.InstallID || c.Next != want.Next {
		return fmt.Errorf("%w: the change is for another install or another key", ErrRefused)
	}
	return c.Next.Check()
}

// keys are the signing half as envelopes are checked with.
func (p Public) keys() (map[string]ed25519.PublicKey, error) {
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	signing, err := capsule.ParsePublicKey(p.SigningKey)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return map[string]ed25519.PublicKey{p.KeyID: signing}, nil
}
