package consent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
)

// StatementType is Statement.Type.
const StatementType = "consent.v1"

const (
	// MaxReason is how long a reason may be, in bytes.
	MaxReason = 500
	// MaxLife is the longest time that an approval counts.
	MaxLife = 366 * 24 * time.Hour
	// slack is how far the clock of who signs may be ahead.
	slack = 5 * time.Minute
)

// Answer is what somebody says to a change.
type Answer string

// The answers.
const (
	Approve Answer = "approve"
	Deny    Answer = "deny"
)

// Statement is what is signed: one answer to one effect.
type Statement struct {
	Type      string `json:"type"`
	InstallID string `json:"install_id"`
	// OriginID is the first change of the line: plans made again and retries keep it.
	OriginID string `json:"origin_id"`
	ChangeID string `json:"change_id"`
	// Effect is the effect digest, What says it in words, as it was shown.
	Effect string `json:"effect_digest"`
	What   string `json:"what"`
	Answer Answer `json:"answer"`
	Reason string `json:"reason,omitempty"`
	// By is who says so, where the key does not tell: the user of the runner's machine.
	By string    `json:"by,omitempty"`
	At time.Time `json:"at"`
	// Until is when an approval ends to count.
	Until time.Time `json:"until,omitzero"`
}

// Subject is what an answer is about. All of it has to agree.
type Subject struct {
	InstallID string `json:"install_id"`
	OriginID  string `json:"origin_id"`
	Effect    string `json:"effect_digest"`
}

// Subject is what the statement is about.
func (s Statement) Subject() Subject {
	return Subject{InstallID: s.InstallID, OriginID: s.OriginID, Effect: s.Effect}
}

// validate says what is wrong with a statement's form.
func (s Statement) validate() error {
	switch {
	case s.Type != StatementType:
		return fmt.Errorf("the statement is of type %.40q, not %s", s.Type, StatementType)
	case s.InstallID == "" || s.OriginID == "" || s.Effect == "":
		return fmt.Errorf("the statement names no install, origin or effect")
	case s.Answer != Approve && s.Answer != Deny:
		return fmt.Errorf("the statement's answer is %.40q", s.Answer)
	case len(s.Reason) > MaxReason:
		return fmt.Errorf("the reason is longer than %d bytes", MaxReason)
	case s.At.IsZero():
		return fmt.Errorf("the statement has no time")
	case s.Answer == Approve && (!s.Until.After(s.At) || s.Until.Sub(s.At) > MaxLife):
		return fmt.Errorf("an approval counts until a time after it was given, at most %d days", MaxLife/(24*time.Hour))
	}
	return nil
}

// Bytes is what is signed of a statement.
func (s Statement) Bytes() ([]byte, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	return capsule.Canonical(s)
}

// ParseStatement reads what Bytes made, and nothing else: no unknown field, no text
// around it.
func ParseStatement(payload []byte) (s Statement, err error) {
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Statement{}, fmt.Errorf("statement: %w", err)
	}
	again, err := s.Bytes()
	if err != nil {
		return Statement{}, err
	}
	if !bytes.Equal(again, payload) {
		return Statement{}, fmt.Errorf("statement: not in canonical form")
	}
	return s, nil
}
