// Package webhook signs what Berth sends to webhooks, and checks it where it
// arrives. The scheme is that of Standard Webhooks: three headers, and an
// HMAC-SHA256 over id, timestamp and body, each joined by a dot.
//
// A receiver calls Verify with the body as it came, before it decodes it, and
// drops ids that it has seen: an event may come more than once.
package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a delivery.
const (
	HeaderID        = "webhook-id"        // the id of the event; the same for each attempt
	HeaderTimestamp = "webhook-timestamp" // of the attempt, in seconds since 1970
	HeaderSignature = "webhook-signature" // "v1,BASE64", one for each active secret, with a space between
)

// Tolerance is how far the timestamp of a delivery may be from the receiver's
// clock: what is older may have been recorded and sent again by somebody else.
const Tolerance = 5 * time.Minute

const (
	secretPrefix  = "whsec_"
	secretBytes   = 32
	versionPrefix = "v1,"
)

// What Verify finds wrong.
var (
	ErrNotSigned    = errors.New("the request has no webhook-id, webhook-timestamp or webhook-signature")
	ErrTooOld       = errors.New("the timestamp is not within the tolerance of now")
	ErrBadSignature = errors.New("no signature is by the secret")
	errBadSecret    = errors.New("the secret is not one of a webhook: whsec_ and base64")
)

// NewSecret makes a signing secret.
func NewSecret() string {
	raw := make([]byte, secretBytes)
	_, _ = rand.Read(raw) // never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(raw)
}

// Sign writes the headers of a delivery, with a signature of each secret.
func Sign(h http.Header, id string, at time.Time, body []byte, secrets ...string) error {
	stamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, 0, len(secrets))
	for _, secret := range secrets {
		mac, err := signature(secret, id, stamp, body)
		if err != nil {
			return err
		}
		signatures = append(signatures, versionPrefix+base64.StdEncoding.EncodeToString(mac))
	}
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, stamp)
	h.Set(HeaderSignature, strings.Join(signatures, " "))
	return nil
}

// Verify checks that a request was signed with the secret, not more than Tolerance
// from now. It returns nil when it was, and the id is safe to be used then.
func Verify(h http.Header, body []byte, secret string, now time.Time) error {
	id, stamp, signed := h.Get(HeaderID), h.Get(HeaderTimestamp), h.Get(HeaderSignature)
	if id == "" || stamp == "" || signed == "" {
		return ErrNotSigned
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return ErrNotSigned
	}
	if off := now.Sub(time.Unix(seconds, 0)).Abs(); off > Tolerance {
		return ErrTooOld
	}
	want, err := signature(secret, id, stamp, body)
	if err != nil {
		return err
	}
	for one := range strings.FieldsSeq(signed) {
		text, v1 := strings.CutPrefix(one, versionPrefix)
		got, err := base64.StdEncoding.DecodeString(text)
		if v1 && err == nil && hmac.Equal(got, want) {
			return nil
		}
	}
	return ErrBadSignature
}

func signature(secret, id, stamp string, body []byte) ([]byte, error) {
	text, ok := strings.CutPrefix(secret, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(key) < 16 {
		return nil, errBadSecret // the cause could quote it
	}
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "%s.%s.", id, stamp) // a hash does not fail
	_, _ = mac.Write(body)
	return mac.Sum(nil), nil
}
