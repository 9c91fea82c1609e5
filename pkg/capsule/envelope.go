package capsule

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// ErrSignature is wrapped by all refusals of Verify.
var ErrSignature = errors.New("signature refused")

// Envelope is a DSSE envelope: the payload's bytes as they were signed, what
// they are, and one or more signatures (a customer key may counter-sign).
type Envelope struct {
	PayloadType string      `json:"payloadType"`
	Payload     string      `json:"payload"` // base64
	Signatures  []Signature `json:"signatures"`
}

// Signature is one key's signature over type and payload together.
type Signature struct {
	KeyID string `json:"keyid"`
	Sig   string `json:"sig"` // base64
}

// Sign puts payload, as canonical JSON, into an envelope signed by key.
func Sign(key ed25519.PrivateKey, keyID string, payloadType string, payload any) (Envelope, error) {
	raw, err := Canonical(payload)
	if err != nil {
		return Envelope{}, fmt.Errorf("sign %s: %w", payloadType, err)
	}
	env := Envelope{PayloadType: payloadType, Payload: base64.StdEncoding.EncodeToString(raw)}
	return Countersign(key, keyID, env)
}

// Countersign returns env with one more signature. It signs what is there:
// verify and look at the envelope first.
func Countersign(key ed25519.PrivateKey, keyID string, env Envelope) (Envelope, error) {
	if len(key) != ed25519.PrivateKeySize {
		return Envelope{}, errors.New("sign: not an Ed25519 private key")
	}
	raw, err := base64.StdEncoding.DecodeString(env.Payload)
	if err != nil {
		return Envelope{}, errors.New("sign: payload is not base64")
	}
	sig := ed25519.Sign(key, preAuth(env.PayloadType, raw))
	env.Signatures = append(slices.Clip(env.Signatures),
		Signature{KeyID: keyID, Sig: base64.StdEncoding.EncodeToString(sig)})
	return env, nil
}

// Verify checks that env is of the wanted type and carries a good signature of
// one of keys (by key id), then decodes the signed bytes into out, a pointer,
// and returns the id of the key that signed. On an error, which wraps
// ErrSignature unless only decoding went wrong, out is untouched.
func Verify(keys map[string]ed25519.PublicKey, payloadType string, env Envelope, out any) (keyID string, err error) {
	signers, err := Signers(keys, payloadType, env)
	if err != nil {
		return "", err
	}
	raw, err := base64.StdEncoding.DecodeString(env.Payload)
	if err != nil {
		return "", fmt.Errorf("%w: payload is not base64", ErrSignature)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return "", fmt.Errorf("decode signed payload: %w", err)
	}
	return signers[0], nil
}

// Signers returns the ids of all known keys with a good signature on env, each
// once, in the order of the signatures: what a rule such as "vendor and
// customer" is decided on. None is an error. Signatures of unknown keys are
// skipped; a bad signature under a known key's id refuses the envelope.
func Signers(keys map[string]ed25519.PublicKey, payloadType string, env Envelope) ([]string, error) {
	if env.PayloadType != payloadType {
		return nil, fmt.Errorf("%w: payload is %.80q, want %q", ErrSignature, env.PayloadType, payloadType)
	}
	raw, err := base64.StdEncoding.DecodeString(env.Payload)
	if err != nil {
		return nil, fmt.Errorf("%w: payload is not base64", ErrSignature)
	}
	message := preAuth(env.PayloadType, raw)
	var signers []string
	for _, s := range env.Signatures {
		pub, known := keys[s.KeyID]
		if !known {
			continue
		}
		sig, err := base64.StdEncoding.DecodeString(s.Sig)
		if err != nil || len(pub) != ed25519.PublicKeySize || !ed25519.Verify(pub, message, sig) {
			return nil, fmt.Errorf("%w: bad signature of key %s", ErrSignature, s.KeyID)
		}
		if !slices.Contains(signers, s.KeyID) {
			signers = append(signers, s.KeyID)
		}
	}
	if len(signers) == 0 {
		return nil, fmt.Errorf("%w: no signature of a trusted key", ErrSignature)
	}
	return signers, nil
}

// PayloadDigest returns the digest of the signed bytes: how the chain names a
// capsule. It is empty for a payload that is not base64.
func (e Envelope) PayloadDigest() string {
	raw, err := base64.StdEncoding.DecodeString(e.Payload)
	if err != nil {
		return ""
	}
	return DigestBytes(raw)
}

// preAuth is the pre-authentication encoding of DSSE v1. The lengths make sure
// that no byte can move between type and payload.
func preAuth(payloadType string, payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
}
