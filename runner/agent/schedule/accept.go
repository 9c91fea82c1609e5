package schedule

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/weakened"
)

const (
	// ahead is how far the clock of the control plane may be ahead.
	ahead = 5 * time.Minute
	// maxJump is how far a version may be above the one in force. Versions count
	// one by one; without a limit one forged document could end all counting.
	maxJump = 1_000_000
	// maxVersion is the largest number that every reader of JSON holds exactly.
	maxVersion = 1<<53 - 1
)

// Why settings are not taken, for errors.Is.
var (
	ErrForeign = errors.New("settings are for another install")
	ErrOlder   = errors.New("settings are not newer than those in force")
	ErrJump    = errors.New("the version of the settings is too far from the one in force")
	ErrFuture  = errors.New("settings were issued in the future")
	ErrExpired = errors.New("settings have expired")
)

// Stored are settings as the runner keeps them.
type Stored struct {
	// ReceivedAt is when they came, by the runner's clock: they are good for a
	// week from then, whatever they say.
	ReceivedAt time.Time        `json:"received_at"`
	Envelope   capsule.Envelope `json:"envelope"`
}

// UnmarshalJSON reads also what runners of before kept: the envelope alone.
func (s *Stored) UnmarshalJSON(raw []byte) error {
	type stored Stored
	var old capsule.Envelope
	if err := json.Unmarshal(raw, (*stored)(s)); err != nil {
		return err
	}
	if s.Envelope.Payload != "" {
		return nil
	}
	if err := json.Unmarshal(raw, &old); err != nil {
		return err
	}
	s.Envelope = old
	return nil
}

// Install is whose settings a runner takes, and from whom.
type Install struct {
	Keys      map[string]ed25519.PublicKey
	OrgID, ID string
}

// Accept verifies signed settings that came now and compares them with the
// version in force; 0 when there is none.
func (i Install) Accept(env capsule.Envelope, inForce int64, now time.Time) (jobspec.Settings, error) {
	s, err := i.verify(env)
	if err != nil {
		return jobspec.Settings{}, err
	}
	switch {
	case s.Version <= inForce && !weakened.Is(weakened.SettingsVersion):
		return jobspec.Settings{}, fmt.Errorf("%w: %d, not above %d", ErrOlder, s.Version, inForce)
	case s.Version > maxVersion, s.Version-inForce > maxJump:
		return jobspec.Settings{}, fmt.Errorf("%w: %d after %d", ErrJump, s.Version, inForce)
	case s.IssuedAt.After(now.Add(ahead)):
		return jobspec.Settings{}, fmt.Errorf("%w: %s, and it is %s", ErrFuture, s.IssuedAt.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case !now.Before(Expiry(s, now)):
		return jobspec.Settings{}, ErrExpired
	}
	return s, nil
}

// Again verifies stored settings: their file proves nothing. Those that have expired are
// returned too, with ErrExpired: nothing that changes things is started from them, and no
// older ones are taken.
func (i Install) Again(kept Stored, now time.Time) (s jobspec.Settings, version int64, err error) {
	if s, err = i.verify(kept.Envelope); err != nil {
		return jobspec.Settings{}, 0, err
	}
	version = s.Version
	switch {
	case s.Version < 1 || s.Version > maxVersion:
		return jobspec.Settings{}, 0, fmt.Errorf("%w: %d", ErrJump, s.Version)
	case s.IssuedAt.After(now.Add(ahead)):
		return jobspec.Settings{}, version, ErrFuture
	case !now.Before(Expiry(s, kept.ReceivedAt)):
		return s, version, ErrExpired
	}
	return s, version, nil
}

func (i Install) verify(env capsule.Envelope) (s jobspec.Settings, err error) {
	if weakened.Is(weakened.SettingsSignature) {
		err = weakened.Decode(env.Payload, &s)
	} else {
		_, err = capsule.Verify(i.Keys, capsule.SettingsType, env, &s)
	}
	if err != nil {
		return s, err
	}
	if s.OrgID != i.OrgID || s.InstallID != i.ID {
		return s, ErrForeign
	}
	return s, nil
}

// Expiry is until when settings are good that came at received: what they say,
// but no longer than any settings may last. A zero time of receipt is not known.
func Expiry(s jobspec.Settings, received time.Time) time.Time {
	end := s.ExpiresAt
	limits := []time.Time{s.IssuedAt}
	if !received.IsZero() {
		limits = append(limits, received)
	}
	for _, from := range limits {
		if limit := from.Add(jobspec.SettingsLifetime); limit.Before(end) {
			end = limit
		}
	}
	return end
}
