package offer

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
)

// The types of what is signed.
const (
	StatementType  = "release.v1"
	RotationType   = "vendor-key.v1"
	RevocationType = "release-revocation.v1"
)

const (
	// DefaultLife is how long a statement is good for a first acceptance.
	DefaultLife = 90 * 24 * time.Hour
	// MaxLife is the longest such time.
	MaxLife = 3 * 366 * 24 * time.Hour
	// MaxBytes is the longest envelope that is read, as JSON.
	MaxBytes = 32 << 10
	// MaxPerRelease is how many statements of one release are kept and looked at, and how
	// many revocations.
	MaxPerRelease = 16
	// MaxRevocations is how many revocations of an app, the newest, come with the settings
	// of an install.
	MaxRevocations = 32
	// maxReason is the longest reason of a revocation, in bytes.
	maxReason = 500
	// maxName is the longest id or name.
	maxName = 200
)

// The purposes of signatures: none is good for another, nor for a consent.
var (
	ForRelease    = consent.Purpose{Type: "application/vnd.berth.release.v1+json", Namespace: "release@berth.dev"}
	ForRotation   = consent.Purpose{Type: "application/vnd.berth.vendor-key.v1+json", Namespace: "vendor-key@berth.dev"}
	ForRevocation = consent.Purpose{Type: "application/vnd.berth.release-revocation.v1+json", Namespace: "release-revocation@berth.dev"}
)

// Statement is what the vendor signs of a release.
type Statement struct {
	Type  string `json:"type"`
	OrgID string `json:"org_id"`
	AppID string `json:"app_id"`
	// App is the app's name when it was signed, for people.
	App       string `json:"app"`
	ReleaseID string `json:"release_id"`
	Number    int    `json:"number"`
	// Manifest is the digest of jobspec.Manifest.
	Manifest string `json:"manifest"`
	// KeyID is the key that signs.
	KeyID  string    `json:"key_id"`
	Issued time.Time `json:"issued"`
	// Expires is when the release can no longer be accepted for the first time.
	Expires time.Time `json:"expires"`
}

// Rotation is what the old key signs of the new one.
type Rotation struct {
	Type  string `json:"type"`
	OrgID string `json:"org_id"`
	AppID string `json:"app_id"`
	// OldKeyID signs. NewKey is the public key, as consent.ParseKey reads it.
	OldKeyID string    `json:"old_key_id"`
	NewKeyID string    `json:"new_key_id"`
	NewKey   string    `json:"new_key"`
	Issued   time.Time `json:"issued"`
}

// Revocation is what the vendor signs of a release that must not be installed any more.
type Revocation struct {
	Type  string `json:"type"`
	OrgID string `json:"org_id"`
	AppID string `json:"app_id"`
	// App is the app's name when it was signed, for people.
	App       string `json:"app"`
	ReleaseID string `json:"release_id"`
	Number    int    `json:"number"`
	Reason    string `json:"reason"`
	// KeyID is the key that signs.
	KeyID  string    `json:"key_id"`
	Issued time.Time `json:"issued"`
}

func (s Statement) validate() error {
	switch {
	case s.Type != StatementType:
		return fmt.Errorf("it is of type %.40q, not %s", s.Type, StatementType)
	case !named(s.OrgID, s.AppID, s.App, s.ReleaseID, s.KeyID):
		return errors.New("it names no org, app, release or key, or one that is too long")
	case s.Number < 1:
		return errors.New("it has no release number")
	case !isDigest(s.Manifest):
		return errors.New("it has no digest of a manifest")
	case s.Issued.IsZero() || !s.Expires.After(s.Issued) || s.Expires.Sub(s.Issued) > MaxLife:
		return fmt.Errorf("it expires at a time after it was issued, at most %d days", MaxLife/(24*time.Hour))
	}
	return nil
}

func (r Rotation) validate() error {
	switch {
	case r.Type != RotationType:
		return fmt.Errorf("it is of type %.40q, not %s", r.Type, RotationType)
	case !named(r.OrgID, r.AppID, r.OldKeyID, r.NewKeyID) || r.Issued.IsZero():
		return errors.New("it names no org, app, keys or time")
	}
	key, err := consent.ParseKey(r.NewKey)
	switch {
	case err != nil:
		return fmt.Errorf("the new key is %w", err)
	case key.ID != r.NewKeyID:
		return errors.New("the new key has another id than it says")
	case r.NewKeyID == r.OldKeyID:
		return errors.New("the new key is the old one")
	}
	return nil
}

func (r Revocation) validate() error {
	switch {
	case r.Type != RevocationType:
		return fmt.Errorf("it is of type %.40q, not %s", r.Type, RevocationType)
	case !named(r.OrgID, r.AppID, r.App, r.ReleaseID, r.KeyID):
		return errors.New("it names no org, app, release or key, or one that is too long")
	case r.Number < 1:
		return errors.New("it has no release number")
	case r.Reason == "" || len(r.Reason) > maxReason || strings.ContainsFunc(r.Reason, unicode.IsControl):
		return fmt.Errorf("it has no reason, or one of more than a line or %d bytes", maxReason)
	case r.Issued.IsZero():
		return errors.New("it has no time")
	}
	return nil
}

func (s Statement) signer() string  { return s.KeyID }
func (r Rotation) signer() string   { return r.OldKeyID }
func (r Revocation) signer() string { return r.KeyID }

func named(names ...string) bool {
	for _, n := range names {
		if n == "" || len(n) > maxName || strings.ContainsFunc(n, unicode.IsControl) {
			return false
		}
	}
	return true
}

// isDigest says whether it is "sha256:" and 64 hex digits.
func isDigest(text string) bool {
	hex, found := strings.CutPrefix(text, "sha256:")
	return found && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}

// Sign makes and signs a statement.
func Sign(by consent.Signer, s Statement) (capsule.Envelope, error) {
	s.Type, s.KeyID = StatementType, by.Key.ID
	return sign(by, ForRelease, s)
}

// SignRotation has the old key sign the new one.
func SignRotation(by consent.Signer, r Rotation) (capsule.Envelope, error) {
	r.Type, r.OldKeyID = RotationType, by.Key.ID
	return sign(by, ForRotation, r)
}

// Revoke makes and signs a revocation.
func Revoke(by consent.Signer, r Revocation) (capsule.Envelope, error) {
	r.Type, r.KeyID = RevocationType, by.Key.ID
	return sign(by, ForRevocation, r)
}

type statement interface {
	validate() error
	signer() string // id of the key that it names
}

func sign(by consent.Signer, p consent.Purpose, s statement) (capsule.Envelope, error) {
	if err := s.validate(); err != nil {
		return capsule.Envelope{}, fmt.Errorf("what is to be signed: %w", err)
	}
	payload, err := capsule.Canonical(s)
	if err != nil {
		return capsule.Envelope{}, err
	}
	return by.Sign(p, consent.NewEnvelope(p, payload))
}

// Read reads a statement and verifies nothing but its form: for people, and for the
// control plane, which has no key to verify it with.
func Read(env capsule.Envelope) (Statement, error) {
	return read[Statement](ForRelease, "statement of a release", env)
}

// ReadRevocation reads a revocation as Read does a statement.
func ReadRevocation(env capsule.Envelope) (Revocation, error) {
	return read[Revocation](ForRevocation, "revocation of a release", env)
}

// Open verifies a statement against the keys whose signatures count.
func Open(keys []consent.Key, env capsule.Envelope) (Statement, error) {
	return open[Statement](keys, ForRelease, "statement of a release", env)
}

// OpenRotation verifies a rotation against the keys whose signatures count.
func OpenRotation(keys []consent.Key, env capsule.Envelope) (Rotation, error) {
	return open[Rotation](keys, ForRotation, "rotation of the vendor's key", env)
}

// OpenRevocation verifies a revocation against the keys whose signatures count.
func OpenRevocation(keys []consent.Key, env capsule.Envelope) (Revocation, error) {
	return open[Revocation](keys, ForRevocation, "revocation of a release", env)
}

func read[S statement](p consent.Purpose, what string, env capsule.Envelope) (s S, err error) {
	var none S
	payload, err := payloadOf(p, env)
	if err == nil {
		s, err = parse[S](payload)
	}
	if err == nil && (len(env.Signatures) != 1 || env.Signatures[0].KeyID != s.signer()) {
		err = errors.New("it is not signed by the key that it names, and by no other")
	}
	if err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	return s, nil
}

func open[S statement](keys []consent.Key, p consent.Purpose, what string, env capsule.Envelope) (S, error) {
	var none S
	if tooLong(env) {
		return none, fmt.Errorf("%s: more than %d bytes", what, MaxBytes)
	}
	ids, payload, err := consent.Signers(keys, p, env)
	if err != nil {
		return none, err
	}
	s, err := parse[S](payload)
	if err == nil && s.signer() != ids[0] {
		err = errors.New("it is signed by another key than it names")
	}
	if err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	return s, nil
}

func payloadOf(p consent.Purpose, env capsule.Envelope) ([]byte, error) {
	if env.PayloadType != p.Type {
		return nil, fmt.Errorf("it is of type %.80q, not %s", env.PayloadType, p.Type)
	}
	if tooLong(env) {
		return nil, fmt.Errorf("more than %d bytes", MaxBytes)
	}
	payload, err := base64.StdEncoding.DecodeString(env.Payload)
	if err != nil {
		return nil, errors.New("its payload is not base64")
	}
	return payload, nil
}

func tooLong(env capsule.Envelope) bool {
	size := len(env.Payload)
	for _, s := range env.Signatures {
		size += len(s.KeyID) + len(s.Sig)
	}
	return size > MaxBytes
}

// parse reads what sign wrote, and nothing else: no unknown field, no text around it.
func parse[S statement](payload []byte) (s S, err error) {
	var none S
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return none, err
	}
	if err := s.validate(); err != nil {
		return none, err
	}
	again, err := capsule.Canonical(s)
	if err != nil {
		return none, err
	}
	if !bytes.Equal(again, payload) {
		return none, errors.New("it is not in canonical form")
	}
	return s, nil
}
