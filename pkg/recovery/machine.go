package recovery

import (
	"crypto/ed25519"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
)

// MachineType is the payload type of a signed Machine.
const MachineType = "application/vnd.berth.machine.v1+json"

// Machine says that a machine is the customer's. The recovery key signs it when it
// is made for the machine, or when it lets the machine take over. A machine that
// comes later then knows which records of the chain its customer's machines wrote,
// no matter who brings it the chain.
type Machine struct {
	Machine  string    `json:"machine"` // Ed25519, raw in base64
	SignedAt time.Time `json:"signed_at"`
}

// Vouch signs that a machine is the customer's.
func (k *Key) Vouch(machine ed25519.PublicKey, now time.Time) (capsule.Envelope, error) {
	return capsule.Sign(k.signer, k.Public().KeyID, MachineType, Machine{Machine: capsule.EncodePublicKey(machine), SignedAt: now.UTC()})
}

// VerifyMachine returns the machine key that the recovery key vouches for.
func VerifyMachine(key Public, env capsule.Envelope) (ed25519.PublicKey, error) {
	keys, err := key.keys()
	if err != nil {
		return nil, err
	}
	var m Machine
	if _, err := capsule.Verify(keys, MachineType, env, &m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return capsule.ParsePublicKey(m.Machine)
}
