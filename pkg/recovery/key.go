// Package recovery is the key that a customer makes and keeps apart from the
// runner's machine. It is a second recipient of everything that is sealed to the
// install, and it signs the handover to another machine: with it a lost disk
// loses nothing, and without it nobody can take a machine's place.
package recovery

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/seal"
)

const (
	// header starts the file of a key, so that a wrong file is recognised.
	header = "berth-recovery-key-v1:"
	// seedLen is the length of the secret in bytes: 256 bits.
	seedLen = 32
)

// Key is a recovery key. It never prints itself: use String only to store it, in
// a file that just its owner reads.
type Key struct {
	seed    []byte
	signer  ed25519.PrivateKey
	opening *seal.Identity
}

// Public is the half of a recovery key that the runner and the control plane
// know.
type Public struct {
	// KeyID is capsule.KeyID of the signing half.
	KeyID string `json:"key_id"`
	// SigningKey is the Ed25519 key that signs handovers, raw in base64.
	SigningKey string `json:"signing_key"`
	// Recipient is what is sealed to ("age1…").
	Recipient string `json:"recipient"`
}

// Check says what is wrong with a public half that somebody else sent or wrote.
func (p Public) Check() error {
	key, err := capsule.ParsePublicKey(p.SigningKey)
	if err != nil {
		return fmt.Errorf("recovery key: signing_key: %w", err)
	}
	if capsule.KeyID(key) != p.KeyID {
		return errors.New("recovery key: key_id is not that of signing_key")
	}
	if err := seal.ValidRecipient(p.Recipient); err != nil {
		return fmt.Errorf("recovery key: recipient: %w", err)
	}
	return nil
}

// New makes a key from the system's randomness.
func New() (*Key, error) {
	seed := make([]byte, seedLen)
	_, _ = rand.Read(seed) // never fails: crypto/rand ends the program instead
	return fromSeed(seed)
}

// Parse reads what String wrote; space around it is ignored. The error never
// contains the input.
func Parse(text string) (*Key, error) {
	encoded, ok := strings.CutPrefix(strings.TrimSpace(text), header)
	seed, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(seed) != seedLen {
		return nil, errors.New("not a recovery key of Berth")
	}
	return fromSeed(seed)
}

func fromSeed(seed []byte) (*Key, error) {
	signing, err := hkdf.Key(sha256.New, seed, nil, "berth/recovery/sign", ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("derive recovery key: %w", err)
	}
	scalar, err := hkdf.Key(sha256.New, seed, nil, "berth/recovery/open", seedLen)
	if err != nil {
		return nil, fmt.Errorf("derive recovery key: %w", err)
	}
	opening, err := seal.IdentityFrom(scalar)
	if err != nil {
		return nil, fmt.Errorf("derive recovery key: %w", err)
	}
	return &Key{seed: seed, signer: ed25519.NewKeyFromSeed(signing), opening: opening}, nil
}

// Signer signs handovers.
func (k *Key) Signer() ed25519.PrivateKey { return k.signer }

// Identity opens what is sealed to the install.
func (k *Key) Identity() *seal.Identity { return k.opening }

// Public is what others may know.
func (k *Key) Public() Public {
	public, _ := k.signer.Public().(ed25519.PublicKey)
	return Public{KeyID: capsule.KeyID(public), SigningKey: capsule.EncodePublicKey(public), Recipient: k.opening.Recipient()}
}

// String returns the secret itself, one line.
func (k *Key) String() string { return header + base64.StdEncoding.EncodeToString(k.seed) }

// Format keeps the secret out of logs and errors: all verbs of package fmt print
// the key's id instead.
func (k *Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "recovery key "+k.Public().KeyID) }
