// Package orders holds the keys with which builder orders builds: one per org,
// derived from a secret that is in a file of builder's own and never in the
// database. Only Build Runners trust their public halves, which builder itself
// writes down for them.
package orders

import (
	"crypto/ed25519"
	"fmt"
	"os"

	"github.com/berth-dev/berth/pkg/seal"
)

// label separates these keys from others of the same secret.
const label = "orders"

// Keys are the keys of all orgs. Safe for concurrent use.
type Keys struct{ secret *seal.MasterKey }

// Open reads the secret at path, or makes one (mode 0600). Another secret is
// other keys: the fleet then writes them down, and orders of before are refused.
func Open(path string) (*Keys, error) {
	secret, err := seal.LoadOrCreateMasterKey(path)
	if err != nil {
		return nil, fmt.Errorf("secret of the orders for builds: %w", err)
	}
	return &Keys{secret: secret}, nil
}

// OpenGiven is Open for a secret that somebody else provides: it makes none.
func OpenGiven(path string) (*Keys, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("secret of the orders for builds: %w", err)
	}
	return Open(path)
}

// Private signs orders for builds of an org.
func (k *Keys) Private(orgID string) (ed25519.PrivateKey, error) {
	return k.secret.Signer(label, orgID)
}

// Public is what the org's Build Runner trusts.
func (k *Keys) Public(orgID string) (ed25519.PublicKey, error) {
	private, err := k.Private(orgID)
	if err != nil {
		return nil, err
	}
	public, _ := private.Public().(ed25519.PublicKey)
	return public, nil
}
