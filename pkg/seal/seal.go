// Package seal closes secrets for their readers (an install and its customer's
// recovery key, or an org) and for one purpose. What is sealed with public
// recipients ("age1…") opens only with an identity that belongs to one of them
// (age, X25519), and only as what it was sealed for: the purpose is part of the
// plaintext and is compared before a byte is released. The control plane stores
// and carries sealed bytes; it has no identity of an install and so cannot read
// them, and it cannot have the runner open one thing as another. The format is
// described in docs/reference/seal.md.
//
// Sealing hides, it does not authenticate the sender: anybody who knows the
// recipient can seal. Who sent a value is proven elsewhere (signed requests,
// capsules).
package seal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"

	"github.com/berth-dev/berth/pkg/weakened"
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

// Recipient is the public half, "age1…", for the side that seals.
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

// Seal encrypts plaintext for a purpose in the binary age format, so that each
// of the recipients can open it. Two calls with the same arguments give different
// bytes.
func Seal(recipients []string, purpose Purpose, plaintext []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := NewWriter(&out, recipients, purpose)
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

// Open decrypts what Seal made for the same purpose. It returns ErrNotForUs for
// bytes of another recipient, ErrOtherPurpose for bytes of another purpose,
// ErrFirstForm for bytes that name none, and another error when a single bit
// changed; with an error never a byte of the plaintext.
func Open(id *Identity, purpose Purpose, sealed []byte) ([]byte, error) {
	r, err := NewReader(bytes.NewReader(sealed), id, purpose)
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("open sealed bytes: %w", err)
	}
	return plain, nil
}

// Opener opens sealed bytes for a purpose, as Open does.
type Opener func(purpose Purpose, sealed []byte) ([]byte, error)

// Opener opens what was sealed to the identity.
func (i *Identity) Opener() Opener {
	return func(purpose Purpose, sealed []byte) ([]byte, error) { return Open(i, purpose, sealed) }
}

// EitherOf opens what one of two opens: a machine that took over has its own key,
// and the recovery key for what is not sealed to it yet.
func EitherOf(first, second Opener) Opener {
	return func(purpose Purpose, sealed []byte) ([]byte, error) {
		plain, err := first(purpose, sealed)
		if errors.Is(err, ErrNotForUs) {
			return second(purpose, sealed)
		}
		return plain, err
	}
}

// OpenFirstForm opens what was sealed before sealed bytes carried their purpose,
// whatever it is. Only what seals them again, or has not done so yet, may call
// it. Bytes that name a purpose are refused with ErrOtherPurpose: this is no way
// round it.
func OpenFirstForm(id *Identity, sealed []byte) ([]byte, error) {
	r, err := decrypt(bytes.NewReader(sealed), id)
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("open sealed bytes: %w", err)
	}
	if bytes.HasPrefix(plain, []byte(header)) {
		return nil, fmt.Errorf("%w: they are not of the first form", ErrOtherPurpose)
	}
	return plain, nil
}

// NewWriter seals a stream for a purpose into w, so that each of the recipients
// can open it. The result is complete only after Close, which does not close w.
func NewWriter(w io.Writer, recipients []string, purpose Purpose) (io.WriteCloser, error) {
	if len(recipients) == 0 {
		return nil, errors.New("seal: no recipient")
	}
	to := make([]age.Recipient, len(recipients))
	for i, text := range recipients {
		recipient, err := parseRecipient(text)
		if err != nil {
			return nil, err
		}
		to[i] = recipient
	}
	prefix, err := purpose.prefix()
	if err != nil {
		return nil, err
	}
	out, err := age.Encrypt(w, to...)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	if _, err := out.Write(prefix); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return out, nil
}

// NewReader opens a sealed stream for a purpose; the errors are those of Open.
// Each read returns only bytes whose chunk was authenticated; a cut or changed
// stream ends in an error, so act on the whole only after io.EOF.
func NewReader(r io.Reader, id *Identity, purpose Purpose) (io.Reader, error) {
	want, err := purpose.prefix()
	if err != nil {
		return nil, err
	}
	plain, err := decrypt(r, id)
	if err != nil {
		return nil, err
	}
	start, err := readUpTo(plain, len(header)+lengthLen)
	switch {
	case err != nil:
		return nil, err
	case !bytes.HasPrefix(start, []byte(header)):
		return nil, ErrFirstForm
	case len(start) < len(header)+lengthLen:
		return nil, otherPurpose(purpose, nil)
	}
	length := binary.BigEndian.Uint32(start[len(header):])
	if length > maxPurpose {
		return nil, otherPurpose(purpose, nil)
	}
	found, err := readUpTo(plain, int(length))
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(append(start, found...), want) && !weakened.Is(weakened.SealPurpose) {
		return nil, otherPurpose(purpose, found)
	}
	return plain, nil
}

// readUpTo reads n bytes, or fewer when the stream ends before that in order.
func readUpTo(r io.Reader, n int) ([]byte, error) {
	out, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err != nil {
		return nil, fmt.Errorf("open sealed bytes: %w", err)
	}
	return out, nil
}

func decrypt(r io.Reader, id *Identity) (io.Reader, error) {
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
