package chain

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"time"
)

// ErrHead is wrapped when a signed head is not to be trusted.
var ErrHead = errors.New("signed head refused")

// SignedHead is a head as its writer gives it to others. Who keeps it can show
// later that the chain was rewritten or cut.
type SignedHead struct {
	Chain string `json:"chain"`
	Head
	Time  time.Time `json:"time"`
	KeyID string    `json:"key_id"`
	Sig   string    `json:"sig"` // base64
}

// SignHead signs head as of now. Only heads of records that are stored for
// good may be signed.
func SignHead(head Head, s Signer) SignedHead {
	h := SignedHead{Chain: s.Chain, Head: head, Time: s.now().UTC(), KeyID: s.keyID()}
	h.Sig = base64.StdEncoding.EncodeToString(ed25519.Sign(s.Key, h.message()))
	return h
}

// VerifyHead checks the signature of h against the keys that may write its
// chain, by key id. It says nothing about the chain itself.
func VerifyHead(keys map[string]ed25519.PublicKey, h SignedHead) error {
	pub, known := keys[h.KeyID]
	if !known || len(pub) != ed25519.PublicKeySize {
		return fmt.Errorf("%w: unknown key %.80q", ErrHead, h.KeyID)
	}
	sig, err := base64.StdEncoding.DecodeString(h.Sig)
	if err != nil || !ed25519.Verify(pub, h.message(), sig) {
		return fmt.Errorf("%w: bad signature of key %s", ErrHead, h.KeyID)
	}
	return nil
}

// message is what is signed. Quoting keeps the fields apart.
func (h SignedHead) message() []byte {
	return fmt.Appendf(nil, "%s%q\n%d\n%q\n%s\n", headContext,
		h.Chain, h.Seq, h.Hash, h.Time.UTC().Format(time.RFC3339Nano))
}
