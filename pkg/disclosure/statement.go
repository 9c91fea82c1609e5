// Package disclosure is the customer's word that some bytes may leave: a signature over
// their digest. Nobody can add a byte to what was shown and released.
package disclosure

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
)

// Type is Statement.Type.
const Type = "disclosure.v1"

// MaxText bounds recipient and reason, in bytes.
const MaxText = 500

// Purpose is what signatures of a disclosure are for.
var Purpose = consent.Purpose{Type: "application/vnd.berth.disclosure.v1+json", Namespace: "disclosure@berth.dev"}

// Statement is what is signed.
type Statement struct {
	Type      string `json:"type"`
	InstallID string `json:"install_id"`
	RunnerID  string `json:"runner_id"`
	// Bundle is the name of the file, Digest and Size are of its bytes, redacted as they
	// were shown.
	Bundle string `json:"bundle"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
	// Recipient is who may have it, Until how long.
	Recipient string    `json:"recipient"`
	Until     time.Time `json:"until"`
	Reason    string    `json:"reason,omitempty"`
	By        string    `json:"by,omitempty"`
	At        time.Time `json:"at"`
}

// Parse reads a signed statement. One field more or less than this version knows is an
// error: it could mean something.
func Parse(payload []byte) (s Statement, err error) {
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	if err = d.Decode(&s); err != nil {
		return s, fmt.Errorf("no disclosure: %w", err)
	}
	switch {
	case d.InputOffset() != int64(len(payload)):
		return s, fmt.Errorf("bytes after the disclosure")
	case s.Type != Type:
		return s, fmt.Errorf("type %.40q is not %s", s.Type, Type)
	case s.InstallID == "" || s.Bundle == "" || s.Digest == "" || s.Recipient == "" || s.At.IsZero() || !s.Until.After(s.At):
		return s, fmt.Errorf("a disclosure names install, bundle, digest, recipient, and a time that ends after it began")
	case len(s.Recipient) > MaxText || len(s.Reason) > MaxText:
		return s, fmt.Errorf("recipient or reason has more than %d bytes", MaxText)
	}
	return s, nil
}

// Verify checks that one of keys released exactly these bytes. It says nothing of the
// time: see Statement.Until.
func Verify(env capsule.Envelope, bundle []byte, keys []consent.Key) (s Statement, signers []string, err error) {
	signers, payload, err := consent.Signers(keys, Purpose, env)
	if err != nil {
		return s, nil, err
	}
	if s, err = Parse(payload); err != nil {
		return s, nil, err
	}
	if int64(len(bundle)) != s.Size || capsule.DigestBytes(bundle) != s.Digest {
		return s, nil, fmt.Errorf("these are not the bytes that were released: %d bytes, %s; released were %d, %s", len(bundle), capsule.DigestBytes(bundle), s.Size, s.Digest)
	}
	return s, signers, nil
}
