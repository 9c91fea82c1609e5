package capsule

import (
	"crypto/rand"
	"encoding/hex"

	"github.com/Masterminds/semver/v3"
)

// SettingsType is the payload type of signed settings. Verify refuses a payload
// that was signed as something else.
const SettingsType = "application/vnd.berth.settings.v1+json"

// NewNonce returns 128 random bits in hex.
func NewNonce() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b[:])
}

// Reaches reports whether version is at least floor; every version reaches an
// empty one. A version that cannot be read reaches no floor.
func Reaches(version, floor string) bool {
	if floor == "" {
		return true
	}
	have, err := semver.NewVersion(version)
	if err != nil {
		return false
	}
	least, err := semver.NewVersion(floor)
	return err == nil && !have.LessThan(least)
}
