package chain

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/customerrole"
)

// maxLine is the longest line that is written or read, in bytes. Records name
// plans and logs by digest; they do not carry them.
const maxLine = 256 << 10

// recordContext and headContext start what is signed, so that a signature of
// one kind is never good as another.
const (
	recordContext = "berth-chain-record-v1\n"
	headContext   = "berth-chain-head-v1\n"
)

// ErrInvalid is wrapped by refusals of records that make no sense where they
// would stand.
var ErrInvalid = errors.New("invalid chain record")

// Kind says what a record is.
type Kind string

// All kinds of record.
const (
	Intent  Kind = "intent"  // an effect is about to be tried
	Outcome Kind = "outcome" // how the effect of an intent ended
	Anchor  Kind = "anchor"  // the head of another chain, as seen here
	Event   Kind = "event"   // what has no effect of its own: switch, enrolment
)

// Disputed is the result of the event that another process holds the key of the
// chain's writer: who made the records around it, the signatures do not say.
const Disputed = "disputed"

// Record is one entry. Next and Append fill in Chain, Seq, Prev, KeyID and,
// when it is zero, Time; callers fill in the rest.
type Record struct {
	Chain string    `json:"chain"` // id of the install or org
	Seq   int64     `json:"seq"`   // 1, 2, 3, …
	Prev  string    `json:"prev"`  // hash of the line before; "" for the first
	Time  time.Time `json:"time"`
	KeyID string    `json:"key_id"` // of the writer
	Actor string    `json:"actor"`  // who asked: a user, a schedule, a switch
	Kind  Kind      `json:"kind"`
	What  string    `json:"what"` // for people: "deploy api"

	// Intent is the number of the intent that an outcome answers.
	Intent int64 `json:"intent,omitempty"`
	// Job, Effect and Capsule are the id and digests of package capsule.
	Job     string `json:"job,omitempty"`
	Effect  string `json:"effect,omitempty"`
	Capsule string `json:"capsule,omitempty"`
	// Result is how it ended: applied, failed, refused, uncertain, …
	Result string `json:"result,omitempty"`
	// Detail is for people. Never a secret: a chain is shown to others.
	Detail string `json:"detail,omitempty"`
	// Anchored is the other chain's head in an anchor.
	Anchored *SignedHead `json:"anchored,omitempty"`
	// Accepted is the customer's decision, in an event.
	Accepted *Acceptance `json:"accepted,omitempty"`
	// Keys are those that an event names; Handover is the signature by which its
	// writer continues the chain of another.
	Keys     *Keys             `json:"keys,omitempty"`
	Handover *capsule.Envelope `json:"handover,omitempty"`
	// Scripts are those that an acceptance is about, in its intent and its outcome.
	Scripts *Scripts `json:"scripts,omitempty"`
	// Role is the role of the app that was switched on or off, in an event.
	Role *customerrole.Switch `json:"role,omitempty"`
	// Consent is the customer's, in an intent; Rules are standing rules that came into
	// force, in an event.
	Consent *Consent       `json:"consent,omitempty"`
	Rules   *StandingRules `json:"standing_rules,omitempty"`
	// Offer is a signed release that was accepted or revoked, in an event.
	Offer *Offer `json:"offer,omitempty"`
	// VendorKeys are the vendor's keys that count from here on, in an event.
	VendorKeys *VendorKeys `json:"vendor_keys,omitempty"`
}

// Head names the last record of a chain, and by its hash all before it. The
// zero Head is that of a chain without records.
type Head struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// Line is one record as stored.
type Line struct {
	Head
	Raw []byte // exact bytes, without the line feed
}

// Signer is the one writer of a chain.
type Signer struct {
	Chain string // id of the install or org that the chain is of
	Key   ed25519.PrivateKey
	Now   func() time.Time // nil means time.Now
}

// Next makes the line that r becomes after head. It does no I/O: a writer that
// keeps its lines elsewhere than in a file (in rows) stores Raw as it is and
// makes sure that only one line follows a head.
func Next(head Head, r Record, s Signer) (Line, error) {
	if s.Chain == "" || len(s.Key) != ed25519.PrivateKeySize {
		return Line{}, errors.New("chain signer needs a chain id and an Ed25519 key")
	}
	r.Chain, r.Seq, r.Prev, r.KeyID = s.Chain, head.Seq+1, head.Hash, s.keyID()
	if r.Time.IsZero() {
		r.Time = s.now()
	}
	r.Time = r.Time.UTC()
	if err := r.validate(); err != nil {
		return Line{}, err
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return Line{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	signed := raw[:len(raw)-1] // without the closing brace; the signature comes first
	sig := ed25519.Sign(s.Key, append([]byte(recordContext), signed...))
	raw = fmt.Appendf(bytes.Clone(signed), `,"sig":"%s"}`, base64.StdEncoding.EncodeToString(sig))
	if len(raw) > maxLine {
		return Line{}, fmt.Errorf("%w: %d bytes, at most %d", ErrInvalid, len(raw), maxLine)
	}
	return Line{Head: Head{Seq: r.Seq, Hash: hashOf(raw)}, Raw: raw}, nil
}

// ParseRecord decodes a stored line. It checks its form, not its place in a
// chain and not its signature.
func ParseRecord(raw []byte) (Record, error) {
	var stored struct {
		Record
		Sig string `json:"sig"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&stored); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if d.InputOffset() != int64(len(raw)) {
		return Record{}, fmt.Errorf("%w: bytes after the record", ErrInvalid)
	}
	return stored.Record, stored.validate()
}

// validate checks what a record must have, and must not have, by its kind.
func (r Record) validate() error {
	problem := cmp.Or(r.missing(), r.misplaced())
	if problem == "" && (r.What == "" || r.Actor == "") {
		problem = "actor and what are needed"
	}
	if problem != "" {
		return fmt.Errorf("%w: %s", ErrInvalid, problem)
	}
	return nil
}

// missing says what a record of its kind lacks, "" when it has all.
func (r Record) missing() string {
	switch r.Kind {
	case Intent:
		if r.Effect == "" {
			return "an intent needs an effect"
		}
	case Outcome:
		if r.Intent < 1 || r.Intent >= r.Seq {
			return "an outcome names an earlier intent"
		}
		if r.Result == "" {
			return "an outcome needs a result"
		}
	case Anchor:
		if r.Anchored == nil || r.Anchored.Chain == r.Chain {
			return "an anchor carries the head of another chain"
		}
	case Event:
		if r.Accepted != nil && r.Accepted.Reason == "" {
			return "a decision needs a reason"
		}
	default:
		return fmt.Sprintf("unknown kind %.40q", r.Kind)
	}
	return ""
}

// misplaced says what only records of another kind may carry, "" for nothing.
func (r Record) misplaced() string {
	switch {
	case r.Kind != Outcome && r.Intent != 0:
		return "only an outcome names an intent"
	case r.Kind != Anchor && r.Anchored != nil:
		return "only an anchor carries a head"
	case r.Kind != Event && r.Accepted != nil:
		return "only an event carries a decision"
	case r.Kind != Event && (r.Keys != nil || r.Handover != nil):
		return "only an event names keys or carries a handover"
	case r.Kind != Event && r.Role != nil:
		return "only an event tells of a role"
	case r.Kind != Intent && r.Consent != nil:
		return "only an intent names a consent"
	case r.Kind != Event && r.Rules != nil:
		return "only an event tells of standing rules"
	case r.Kind != Event && r.Offer != nil:
		return "only an event tells of a signed release"
	case r.Kind != Event && r.VendorKeys != nil:
		return "only an event tells of the vendor's keys"
	case r.Kind != Intent && r.Kind != Outcome && r.Scripts != nil:
		return "only an intent or an outcome names scripts"
	}
	return ""
}

func (s Signer) keyID() string {
	return capsule.KeyID(s.Key.Public().(ed25519.PublicKey))
}

func (s Signer) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// hashOf is the hash of a stored line.
func hashOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// checkSignature checks the signature at the end of a stored line. Its place
// is fixed by its length, so that the JSON need not be parsed to find it.
func checkSignature(raw []byte, pub ed25519.PublicKey) bool {
	const open, end = `,"sig":"`, `"}`
	sigLen := base64.StdEncoding.EncodedLen(ed25519.SignatureSize)
	signed := len(raw) - len(open) - sigLen - len(end)
	if signed < 1 || len(pub) != ed25519.PublicKeySize {
		return false
	}
	tail := raw[signed:]
	if !bytes.HasPrefix(tail, []byte(open)) || !bytes.HasSuffix(tail, []byte(end)) {
		return false
	}
	sig, err := base64.StdEncoding.DecodeString(string(tail[len(open) : len(open)+sigLen]))
	return err == nil && ed25519.Verify(pub, append([]byte(recordContext), raw[:signed]...), sig)
}
