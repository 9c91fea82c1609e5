package consent

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/berth-dev/berth/pkg/capsule"
)

// ErrSignature is wrapped by all refusals of signatures.
var ErrSignature = errors.New("signature refused")

// Limits of what is read. More than this is no answer of a person.
const (
	maxSignatures = 64
	maxPayload    = 64 << 10 // bytes
	maxSSHSig     = 8 << 10  // bytes
)

// Purpose is what a signature is for. A signature for one is refused for another.
type Purpose struct {
	// Type is the payload type of the envelope, which an Ed25519 key signs too.
	Type string
	// Namespace is that of SSH signatures: ssh-keygen -Y sign -n NAMESPACE.
	Namespace string
}

// The purposes.
var (
	ForStatement = Purpose{Type: "application/vnd.berth.consent.v1+json", Namespace: "consent@berth.dev"}
	ForRules     = Purpose{Type: "application/vnd.berth.consent-rules.v1+toml", Namespace: "consent-rules@berth.dev"}
)

// Key is a public key whose signatures count.
type Key struct {
	// ID names the key: "ed25519:…" or, of an SSH key, its fingerprint "SHA256:…".
	ID string

	raw ed25519.PublicKey // of a key that signs DSSE, nil for an SSH key
	ssh ssh.PublicKey
}

// ParseKey reads a public key: Ed25519 as base64 or PEM, or a line of authorized_keys
// with ssh-ed25519 or sk-ssh-ed25519@openssh.com. Options before the key are refused: one
// of them would do without the touch.
func ParseKey(text string) (Key, error) {
	text = strings.TrimSpace(text)
	if raw, err := capsule.ParsePublicKey(text); err == nil {
		return Key{ID: capsule.KeyID(raw), raw: raw}, nil
	}
	parsed, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(text))
	switch {
	case err != nil:
		return Key{}, errors.New("neither an Ed25519 key (base64 or PEM) nor a line of authorized_keys")
	case len(options) > 0:
		return Key{}, errors.New("an SSH key may have no options here")
	case len(bytes.TrimSpace(rest)) > 0:
		return Key{}, errors.New("more than one key")
	}
	return sshKey(parsed)
}

func sshKey(parsed ssh.PublicKey) (Key, error) {
	if t := parsed.Type(); t != ssh.KeyAlgoED25519 && t != ssh.KeyAlgoSKED25519 {
		return Key{}, fmt.Errorf("an SSH key of type %.60q is not taken: make one with ssh-keygen -t ed25519 or -t ed25519-sk", t)
	}
	plain, err := ssh.ParsePublicKey(parsed.Marshal())
	if err != nil {
		return Key{}, err
	}
	return Key{ID: ssh.FingerprintSHA256(plain), ssh: plain}, nil
}

// Hardware says whether the key is a security key, whose signatures need a touch.
func (k Key) Hardware() bool { return k.ssh != nil && k.ssh.Type() == ssh.KeyAlgoSKED25519 }

// material is the curve point: the same in both forms of one key.
func (k Key) material() string {
	if k.ssh == nil {
		return string(k.raw)
	}
	var wire struct {
		Type  string
		Point []byte
		Rest  []byte `ssh:"rest"`
	}
	_ = ssh.Unmarshal(k.ssh.Marshal(), &wire) // it was parsed
	return string(wire.Point)
}

// Is says whether k is the given Ed25519 key, in whatever form.
func (k Key) Is(pub ed25519.PublicKey) bool { return k.material() == string(pub) }

// verify checks one signature of an envelope.
func (k Key) verify(p Purpose, payload []byte, env capsule.Envelope, s capsule.Signature) error {
	if k.ssh == nil {
		env.Signatures = []capsule.Signature{s}
		if _, err := capsule.Signers(map[string]ed25519.PublicKey{k.ID: k.raw}, p.Type, env); err != nil {
			return fmt.Errorf("%w: bad signature of key %s", ErrSignature, k.ID)
		}
		return nil
	}
	blob, err := base64.StdEncoding.DecodeString(s.Sig)
	if err != nil {
		return fmt.Errorf("%w: the SSH signature is not base64", ErrSignature)
	}
	return verifySSH(k.ssh, p.Namespace, payload, blob)
}

// Signers returns the ids of the keys with a good signature on env, each once. Unknown
// keys are skipped; a bad signature under a known key's id refuses the envelope.
func Signers(keys []Key, p Purpose, env capsule.Envelope) (ids []string, payload []byte, err error) {
	if env.PayloadType != p.Type {
		return nil, nil, fmt.Errorf("%w: payload is %.80q, want %q", ErrSignature, env.PayloadType, p.Type)
	}
	if len(env.Signatures) > maxSignatures || len(env.Payload) > base64.StdEncoding.EncodedLen(maxPayload) {
		return nil, nil, fmt.Errorf("%w: the envelope is too large", ErrSignature)
	}
	payload, err = base64.StdEncoding.DecodeString(env.Payload)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: payload is not base64", ErrSignature)
	}
	for _, s := range env.Signatures {
		i := slices.IndexFunc(keys, func(k Key) bool { return k.ID == s.KeyID })
		if i < 0 {
			continue
		}
		if err := keys[i].verify(p, payload, env, s); err != nil {
			return nil, nil, err
		}
		if !slices.Contains(ids, s.KeyID) {
			ids = append(ids, s.KeyID)
		}
	}
	if len(ids) == 0 {
		return nil, nil, fmt.Errorf("%w: no signature of a known key", ErrSignature)
	}
	return ids, payload, nil
}

// Signer signs for one key.
type Signer struct {
	Key Key
	raw ed25519.PrivateKey
	ssh ssh.Signer
}

// Ed25519Signer signs with a private key, by DSSE.
func Ed25519Signer(key ed25519.PrivateKey) Signer {
	public, _ := key.Public().(ed25519.PublicKey)
	return Signer{Key: Key{ID: capsule.KeyID(public), raw: public}, raw: key}
}

// SSHSigner signs with an SSH key, which may be one that an ssh-agent or a security key
// has.
func SSHSigner(s ssh.Signer) (Signer, error) {
	key, err := sshKey(s.PublicKey())
	return Signer{Key: key, ssh: s}, err
}

// NewEnvelope is an envelope without signatures.
func NewEnvelope(p Purpose, payload []byte) capsule.Envelope {
	return capsule.Envelope{PayloadType: p.Type, Payload: base64.StdEncoding.EncodeToString(payload), Signatures: []capsule.Signature{}}
}

// Sign adds a signature to an envelope. It signs what is there: show it before.
func (s Signer) Sign(p Purpose, env capsule.Envelope) (capsule.Envelope, error) {
	payload, err := base64.StdEncoding.DecodeString(env.Payload)
	if err != nil || env.PayloadType != p.Type {
		return env, fmt.Errorf("%w: this is no envelope of type %s", ErrSignature, p.Type)
	}
	if s.ssh == nil {
		return capsule.Countersign(s.raw, s.Key.ID, env)
	}
	sig, err := s.ssh.Sign(rand.Reader, signedBySSH(p.Namespace, hashSHA512, payload))
	if err != nil {
		return env, err
	}
	return attach(s.Key, p, env, encodeSSH(s.Key.ssh, p.Namespace, sig))
}

// attach adds an SSH signature, once it verifies.
func attach(key Key, p Purpose, env capsule.Envelope, blob []byte) (capsule.Envelope, error) {
	payload, err := base64.StdEncoding.DecodeString(env.Payload)
	if err != nil {
		return env, fmt.Errorf("%w: payload is not base64", ErrSignature)
	}
	if err := verifySSH(key.ssh, p.Namespace, payload, blob); err != nil {
		return env, err
	}
	env.Signatures = append(slices.Clone(env.Signatures), capsule.Signature{KeyID: key.ID, Sig: base64.StdEncoding.EncodeToString(blob)})
	return env, nil
}
