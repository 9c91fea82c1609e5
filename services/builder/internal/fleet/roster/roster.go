// Package roster is the control plane's side of Build Runners: their rows, what
// they are to trust, and the secrets with which they enrol. Where they run is for
// its callers: package fleet, as processes, and package pods, as pods.
package roster

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/builder/internal/database"
	"github.com/berth-dev/berth/services/builder/internal/orders"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/builderdb"
)

// ErrRevoked says that the org has another Build Runner, or none, by now.
var ErrRevoked = errors.New("the build runner was revoked")

// enrolmentLifetime: the runner that uses the secret is started next.
const enrolmentLifetime = time.Hour

// Roster of the Build Runners of all orgs. It is safe for concurrent use.
type Roster struct {
	Store *database.Store
	// Keys are those with which builds are ordered.
	Keys *orders.Keys
	// RunnerAPIURL is where the runners poll.
	RunnerAPIURL string
}

// Runner returns the id of the org's Build Runner. The first call for an org
// makes it.
func (r *Roster) Runner(ctx context.Context, orgID string) (string, error) {
	runnerID, err := r.findOrAdd(ctx, orgID)
	if errors.Is(err, fault.ErrConflict) {
		runnerID, err = r.findOrAdd(ctx, orgID) // somebody was faster: it is there now
	}
	if err != nil {
		return "", fmt.Errorf("build runner of %s: %w", orgID, err)
	}
	return runnerID, nil
}

func (r *Roster) findOrAdd(ctx context.Context, orgID string) (runnerID string, err error) {
	err = r.Store.Tx(ctx, orgID, func(ctx context.Context, tx *database.Tx) error {
		row, err := tx.BuilderRunnerOfOrg(ctx)
		if err == nil || !errors.Is(err, fault.ErrNotFound) {
			runnerID = row.ID
			return err
		}
		runnerID = id.New(id.Runner)
		return tx.BuilderAddRunner(ctx, runnerID)
	})
	return runnerID, err
}

// Enrolled tells whether the org's Build Runner has a key, at the control plane.
// It is ErrRevoked when the org's Build Runner is not this one.
func (r *Roster) Enrolled(ctx context.Context, orgID, runnerID string) (enrolled bool, _ error) {
	err := r.Store.Tx(ctx, orgID, func(ctx context.Context, tx *database.Tx) error {
		row, err := tx.BuilderRunnerOfOrg(ctx)
		if errors.Is(err, fault.ErrNotFound) || (err == nil && row.ID != runnerID) {
			return ErrRevoked
		}
		enrolled = row.PublicKey != nil
		return err
	})
	if err != nil {
		return false, fmt.Errorf("read build runner: %w", err)
	}
	return enrolled, nil
}

// Recall returns what open work of a kind there is, build or build_runner, as
// the orgs that it is of, but for what the caller knows.
func (r *Roster) Recall(ctx context.Context, kind string, known map[string]string) (orgOf map[string]string, _ error) {
	orgOf = map[string]string{}
	err := r.Store.System(ctx, func(ctx context.Context, tx *database.Tx) error {
		open, err := tx.BuilderOpenWork(ctx, kind)
		if err != nil {
			return err
		}
		for _, objectID := range open {
			if known[objectID] != "" {
				continue
			}
			if orgOf[objectID], err = tx.BuilderOrgOf(ctx, objectID); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find build runners: %w", err)
	}
	return orgOf, nil
}

// Trust says what a runner believes: it is the runner's trust.json.
type Trust struct {
	DispatchKeys []TrustedKey `json:"dispatch_keys"` // none: a Build Runner works for nobody else
	BuilderKeys  []TrustedKey `json:"builder_keys"`
	RunnerAPIURL string       `json:"runner_api_url"`
	// OneHost: logs and artifacts go to RunnerAPIURL too.
	OneHost bool `json:"one_host,omitempty"`
	// PrivateCAFile has authorities to trust besides the system's.
	PrivateCAFile string `json:"private_ca_file,omitempty"`
}

// TrustedKey is a key in a Trust.
type TrustedKey struct {
	KeyID     string `json:"key_id"`
	PublicKey string `json:"public_key"`
}

// Trust is what the org's Build Runner is to believe.
func (r *Roster) Trust(orgID string) (Trust, error) {
	key, err := r.Keys.Public(orgID)
	if err != nil {
		return Trust{}, err
	}
	return Trust{
		RunnerAPIURL: r.RunnerAPIURL, DispatchKeys: []TrustedKey{},
		BuilderKeys: []TrustedKey{{KeyID: capsule.KeyID(key), PublicKey: capsule.EncodePublicKey(key)}},
	}, nil
}

// A Secret is what became of an enrolment secret.
type Secret string

const (
	// SecretOpen enrols who comes with it.
	SecretOpen Secret = "open"
	// SecretUsed enrols only the machine that used it.
	SecretUsed Secret = "used"
	// SecretDead enrols nobody: it expired, or was never stored.
	SecretDead Secret = "dead"
)

// Look says what became of a secret of the runner, by its hash.
func (r *Roster) Look(ctx context.Context, orgID, runnerID string, hash []byte) (state Secret, _ error) {
	err := r.Store.Tx(ctx, orgID, func(ctx context.Context, tx *database.Tx) error {
		state = SecretDead
		row, err := tx.BuilderEnrolment(ctx, builderdb.BuilderEnrolmentParams{RunnerID: runnerID, SecretHash: hash})
		switch {
		case errors.Is(err, fault.ErrNotFound):
			return nil
		case row.State == model.EnrolmentOpen && !row.Expired:
			state = SecretOpen
		case row.State == model.EnrolmentUsed:
			state = SecretUsed
		}
		return err
	})
	return state, err
}

// Admit lets who has the secret of this hash enrol as the runner, within an hour,
// and nobody with an earlier one. replaces: a machine that has enrolled is
// replaced. It is ours, so the consent is too.
func (r *Roster) Admit(ctx context.Context, orgID, runnerID string, s Admission) error {
	err := r.Store.Tx(ctx, orgID, func(ctx context.Context, tx *database.Tx) error {
		if err := tx.BuilderExpireEnrolments(ctx, runnerID); err != nil {
			return err
		}
		return tx.BuilderAddEnrolment(ctx, builderdb.BuilderAddEnrolmentParams{
			ID: id.New(id.Enrolment), RunnerID: runnerID, SecretHash: s.Hash, Replaces: s.Replaces, Seconds: enrolmentLifetime.Seconds(),
		})
	})
	if err != nil {
		return fmt.Errorf("enrolment: %w", err)
	}
	return nil
}

// Admission is what is stored of a secret.
type Admission struct {
	Hash     []byte
	Replaces bool
}

// Enrolment secrets are "ben_" and 43 characters of 62, over 256 bits.
const (
	secretPrefix   = "ben_"
	secretLength   = 43
	secretAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// NewSecret makes an enrolment secret.
func NewSecret() (text string, hash []byte) {
	out := []byte(secretPrefix)
	var random [2 * secretLength]byte
	for len(out) < len(secretPrefix)+secretLength {
		_, _ = rand.Read(random[:]) // never fails: crypto/rand ends the program instead
		for _, b := range random {
			// 248 is the largest multiple of 62 in a byte: no character is likelier.
			if b < 248 && len(out) < len(secretPrefix)+secretLength {
				out = append(out, secretAlphabet[b%62])
			}
		}
	}
	return string(out), HashSecret(string(out))
}

// HashSecret is what the database keeps of a secret.
func HashSecret(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}
