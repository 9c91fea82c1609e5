package capsule

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/Masterminds/semver/v3"
)

// Payload types of the envelopes that Berth signs. Verify refuses a payload
// that was signed as something else.
const (
	PayloadType  = "application/vnd.berth.capsule.v1+json"
	SettingsType = "application/vnd.berth.settings.v1+json"
)

// Capsule is the one-time order to bring one approved effect about.
type Capsule struct {
	EffectDigest string `json:"effect_digest"`
	// PlanBytesDigest is DigestBytes of the saved plan itself, which is
	// applied as it is. Empty where no plan bytes exist.
	PlanBytesDigest string `json:"plan_bytes_digest"`
	JobID           string `json:"job_id"`
	ResourceID      string `json:"resource_id"`
	Fence           int64  `json:"fence"`
	RunnerID        string `json:"runner_id"`
	// MinRunnerVersion is the oldest runner that may execute it (semantic
	// version, without or with "v"); empty means any.
	MinRunnerVersion string    `json:"min_runner_version"`
	ExpiresAt        time.Time `json:"expires_at"`
	// Nonce makes the capsule unique; see NewNonce and NonceFile.
	Nonce     string `json:"nonce"`
	OrgID     string `json:"org_id"`
	InstallID string `json:"install_id"`
	// Operation is what to do with the effect: plan, apply, …
	Operation string `json:"operation"`
}

// Facts are what a runner knows by itself, without looking at the capsule: it
// recomputes the digests from the bytes in its hands.
type Facts struct {
	EffectDigest    string
	PlanBytesDigest string
	JobID           string
	ResourceID      string
	Fence           int64
	RunnerID        string
	RunnerVersion   string
	OrgID           string
	InstallID       string
	Operation       string

	Now time.Time
	// NonceUsed is the answer of the nonce store for this capsule's nonce.
	NonceUsed bool
}

// Check compares a verified capsule with the runner's facts and names every
// field that stands against it; A is the capsule's side, B the runner's. No
// diffs means that it may be executed, once. It does no I/O. A capsule with an
// empty effect digest, job, runner, install or nonce matches nothing, also not
// empty facts.
func Check(c Capsule, want Facts) []FieldDiff {
	var diffs []FieldDiff
	differs := func(bad bool, field, a, b string) {
		if bad {
			diffs = append(diffs, FieldDiff{Field: field, A: a, B: b})
		}
	}
	same := func(field, a, b string) { differs(a != b, field, a, b) }
	needed := func(field, a, b string) { differs(a != b || a == "", field, a, b) }

	needed("org_id", c.OrgID, want.OrgID)
	needed("install_id", c.InstallID, want.InstallID)
	needed("runner_id", c.RunnerID, want.RunnerID)
	needed("job_id", c.JobID, want.JobID)
	same("resource_id", c.ResourceID, want.ResourceID)
	differs(c.Fence != want.Fence, "fence", strconv.FormatInt(c.Fence, 10), strconv.FormatInt(want.Fence, 10))
	needed("operation", c.Operation, want.Operation)
	needed("effect_digest", c.EffectDigest, want.EffectDigest)
	same("plan_bytes_digest", c.PlanBytesDigest, want.PlanBytesDigest)
	differs(!reaches(want.RunnerVersion, c.MinRunnerVersion),
		"min_runner_version", c.MinRunnerVersion, want.RunnerVersion)
	differs(!want.Now.Before(c.ExpiresAt),
		"expires_at", c.ExpiresAt.UTC().Format(time.RFC3339), "now "+want.Now.UTC().Format(time.RFC3339))
	differs(c.Nonce == "", "nonce", "", "a nonce")
	differs(want.NonceUsed, "nonce", c.Nonce, "used before")
	return diffs
}

// NewNonce returns 128 random bits in hex.
func NewNonce() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b[:])
}

// reaches reports whether version is at least floor. A version that cannot be
// read reaches no floor.
func reaches(version, floor string) bool {
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
