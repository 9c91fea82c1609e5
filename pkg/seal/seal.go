// Package seal closes secrets for one reader: an install or an org. What is
// sealed with a public recipient ("age1…") opens only with the identity that
// belongs to it (age, X25519). The control plane stores and carries sealed
// bytes; it has no identity of an install and so cannot read them.
//
// Sealing hides, it does not authenticate the sender: anybody who knows the
// recipient can seal. Who sent a value is proven elsewhere (signed requests,
// capsules).
package seal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
)

// ErrNotForUs is returned when sealed bytes were made for another identity.
var ErrNotForUs = errors.New("sealed for another identity")

// Identity is the private half. It never prints itself: use String only to
// store it, in a file that just its owner reads.
type Identity struct {
	key *age.X25519Identity
}

// GenerateIdentity makes a new key pair from the system's randomness.
func GenerateIdentity() (*Identity, error) {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, fmt.Errorf("generate identity: %w", err)
	}
	return &Identity{key: key}, nil
}

// ParseIdentity reads what String wrote; space around it is ignored. The
// error never contains the input.
func ParseIdentity(secret string) (*Identity, error) {
	key, err := age.ParseX25519Identity(strings.TrimSpace(secret))
	if err != nil {
		return nil, errors.New("not an age X25519 identity")
	}
	return &Identity{key: key}, nil
}

// IdentityFrom makes an identity of 32 secret bytes, always the same of the same.
func IdentityFrom(scalar []byte) (*Identity, error) {
	key, err := age.ParseX25519Identity(bech32Upper("age-secret-key-", scalar))
	if err != nil {
		return nil, errors.New("identity not accepted")
	}
	return &Identity{key: key}, nil
}

// Recipient is the public half, "age1…", to be given to whoever seals.
func (i *Identity) Recipient() string { return i.key.Recipient().String() }

// String returns the secret itself, "AGE-SECRET-KEY-1…".
func (i *Identity) String() string { return i.key.String() }

// Format keeps the secret out of logs and errors: all verbs of package fmt
// print the recipient instead.
func (i Identity) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "identity of "+i.Recipient())
}

// ValidRecipient returns an error when recipient cannot be sealed to.
func ValidRecipient(recipient string) error {
	_, err := parseRecipient(recipient)
	return err
}

// Seal encrypts plaintext in the binary age format. Two calls with the same
// arguments give different bytes.
func Seal(recipient string, plaintext []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := NewWriter(&out, recipient)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(plaintext); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return out.Bytes(), nil
}

// Open decrypts what Seal made. It returns ErrNotForUs for bytes of another
// recipient, and another error, with no plaintext, when a single bit changed.
func Open(id *Identity, sealed []byte) ([]byte, error) {
	r, err := NewReader(bytes.NewReader(sealed), id)
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("open sealed bytes: %w", err)
	}
	return plain, nil
}

// NewWriter seals a stream into w. The result is complete only after Close,
// which does not close w.
func NewWriter(w io.Writer, recipient string) (io.WriteCloser, error) {
	to, err := parseRecipient(recipient)
	if err != nil {
		return nil, err
	}
	out, err := age.Encrypt(w, to)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return out, nil
}

// NewReader opens a sealed stream. Each read returns only bytes whose chunk
// was authenticated; a cut or changed stream ends in an error, so act on the
// whole only after io.EOF.
func NewReader(r io.Reader, id *Identity) (io.Reader, error) {
	out, err := age.Decrypt(r, id.key)
	var noMatch *age.NoIdentityMatchError
	if errors.As(err, &noMatch) {
		return nil, ErrNotForUs
	}
	if err != nil {
		return nil, fmt.Errorf("open sealed bytes: %w", err)
	}
	return out, nil
}

func parseRecipient(s string) (*age.X25519Recipient, error) {
	to, err := age.ParseX25519Recipient(s)
	if err != nil {
		return nil, errors.New("not an age X25519 recipient")
	}
	return to, nil
}
