// Package enrolcode is the code with which a runner starts its life where
// nobody of Berth can go: one opaque text that the vendor hands to the
// customer. It says where the control plane is, which keys its orders are
// signed with, and carries two secrets that each work once: one to enrol, one
// to report that the stack was applied.
//
//	berth1.<JSON in base64url>.<first 8 bytes of its SHA-256, base64url>
//
// The sum finds codes that were cut or mistyped. It does not make a code
// authentic: the person who hands it over does, over the channel that they
// choose. A code is a secret until it has been used.
package enrolcode

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
)

const (
	prefix = "berth1"
	// sumBytes is enough against accidents, and nothing else is asked of it.
	sumBytes = 8
	// maxLength bounds what Parse reads: a code has about 700 bytes.
	maxLength = 64 << 10
)

// Code is what a runner is given.
type Code struct {
	// URL is the one address of the control plane: its paths lead to
	// runner-api, log-ingest and the org's registry.
	URL string `json:"url"`
	// OneHost says that URL is all of these. Otherwise URL is runner-api's, and
	// the control plane names the others in each session.
	OneHost   bool   `json:"one_host,omitempty"`
	InstallID string `json:"install_id"`
	Install   string `json:"install"` // its name, for people
	// EnrolmentSecret binds the runner's key, PhoneHomeSecret reports the stack.
	EnrolmentSecret string `json:"enrolment_secret"`
	PhoneHomeSecret string `json:"phone_home_secret"`
	// DispatchKeys are the keys that the runner is to pin.
	DispatchKeys []Key `json:"dispatch_keys"`
	// MinRunnerVersion is the oldest runner that is let in; empty for any.
	MinRunnerVersion string `json:"min_runner_version,omitempty"`
	// RunnerImage is the image of the runner, by name; empty when the customer
	// has to say it.
	RunnerImage string    `json:"runner_image,omitempty"`
	ExpiresAt   time.Time `json:"expires_at"`
}

// Key is a public key with the id under which it signs.
type Key struct {
	KeyID     string `json:"key_id"`
	PublicKey string `json:"public_key"` // base64 or PEM
}

// Encode writes the code. It refuses one that Parse would refuse.
func (c Code) Encode() (string, error) {
	if err := c.validate(); err != nil {
		return "", err
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("encode code: %w", err)
	}
	return prefix + "." + encoding.EncodeToString(raw) + "." + sum(raw), nil
}

// Parse reads a code. White space around it, and line breaks within, are the
// work of mail programs and are left out. Errors never repeat the code.
func Parse(text string) (Code, error) {
	if len(text) > maxLength {
		return Code{}, errors.New("this is no code: it is too long")
	}
	text = strings.Join(strings.Fields(text), "")
	kind, rest, _ := strings.Cut(text, ".")
	body, check, whole := strings.Cut(rest, ".")
	switch {
	case text == "":
		return Code{}, errors.New("the code is empty")
	case kind != prefix && strings.HasPrefix(kind, "berth") && whole:
		return Code{}, fmt.Errorf("the code is of the form %q, and this program knows %q: use a newer one", kind, prefix)
	case kind != prefix:
		return Code{}, fmt.Errorf("this is no code: it does not begin with %q", prefix+".")
	case !whole:
		return Code{}, errors.New("the code is cut off: copy all of it")
	}
	raw, err := encoding.DecodeString(body)
	if err != nil || subtle.ConstantTimeCompare([]byte(sum(raw)), []byte(check)) != 1 {
		return Code{}, errors.New("the code is damaged: copy it again, or ask for a new one")
	}
	var c Code
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields() // what we would not obey must not look obeyed
	if err := decoder.Decode(&c); err != nil {
		return Code{}, errors.New("the code has contents that this program does not know: use a newer one")
	}
	return c, c.validate()
}

// Digest recognises a code without giving its secrets away.
func (c Code) Digest() string {
	raw, _ := json.Marshal(c) // text and a time that was parsed: cannot fail
	digest := sha256.Sum256(raw)
	return hex.EncodeToString(digest[:])
}

// Expired reports whether the secrets are worthless by the clock of now.
func (c Code) Expired(now time.Time) bool { return !now.Before(c.ExpiresAt) }

func (c Code) validate() error {
	var errs []error
	for name, value := range map[string]string{
		"install": c.Install, "install id": c.InstallID, "enrolment secret": c.EnrolmentSecret, "phone-home secret": c.PhoneHomeSecret,
	} {
		if value == "" || strings.ContainsFunc(value, unprintable) {
			errs = append(errs, fmt.Errorf("the code has no usable %s", name))
		}
	}
	if err := CheckURL(c.URL); err != nil {
		errs = append(errs, fmt.Errorf("the address in the code %w", err))
	}
	if len(c.DispatchKeys) == 0 {
		errs = append(errs, errors.New("the code has no dispatch key: its runner could believe no order"))
	}
	for _, k := range c.DispatchKeys {
		if _, err := capsule.ParsePublicKey(k.PublicKey); err != nil {
			errs = append(errs, fmt.Errorf("dispatch key %q of the code: %w", k.KeyID, err))
		}
	}
	if c.ExpiresAt.IsZero() {
		errs = append(errs, errors.New("the code does not say when it expires"))
	}
	return errors.Join(errs...)
}

// CheckURL says what is wrong with the address of a control plane. It wants TLS
// wherever somebody could listen.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return errors.New("is not of the form https://host or https://host:port")
	case u.Scheme == "https", u.Scheme == "http" && loopback(u.Hostname()):
		return nil
	}
	return errors.New("is not https, and secrets go there")
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func unprintable(r rune) bool { return r <= ' ' || r >= 0x7f }

func sum(raw []byte) string {
	digest := sha256.Sum256(raw)
	return encoding.EncodeToString(digest[:sumBytes])
}

var encoding = base64.RawURLEncoding.Strict()
