package fleet

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/durable"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/builder/internal/database"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/builderdb"
)

// errRevoked: the org has another Build Runner, or none, by now.
var errRevoked = errors.New("the build runner was revoked")

// enrolmentLifetime: the runner that uses the secret is started next.
const enrolmentLifetime = time.Hour

// provide makes the data directory what a runner needs to start: trust,
// settings and, until it is enrolled, a secret that works. It repairs what is
// missing and leaves alone what is there. moved says that the runner is to trust
// something else than before, which it learns at its next start.
func (k *keeper) provide(ctx context.Context) (moved bool, err error) {
	var enrolled bool // at the control plane, with a key
	err = k.fleet.store.Tx(ctx, k.orgID, func(ctx context.Context, tx *database.Tx) error {
		row, err := tx.BuilderRunnerOfOrg(ctx)
		if errors.Is(err, fault.ErrNotFound) || (err == nil && row.ID != k.runnerID) {
			return errRevoked
		}
		if err != nil {
			return err
		}
		enrolled = row.PublicKey != nil
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("read build runner: %w", err)
	}
	if err := k.dir.make(); err != nil {
		return false, err
	}
	if moved, err = k.writeTrust(); err != nil {
		return false, fmt.Errorf("write trust: %w", err)
	}
	if err := k.chooseUser(); err != nil {
		return false, fmt.Errorf("choose a user for engines: %w", err)
	}
	return moved, k.provideSecret(ctx, enrolled)
}

// writeTrust writes down whom the runner believes, unless that stands there.
func (k *keeper) writeTrust() (moved bool, err error) {
	key, err := k.fleet.config.Keys.Public(k.orgID)
	if err != nil {
		return false, err
	}
	want := trust{
		RunnerAPIURL: k.fleet.config.RunnerAPIURL, DispatchKeys: []trustedKey{},
		BuilderKeys: []trustedKey{{KeyID: capsule.KeyID(key), PublicKey: capsule.EncodePublicKey(key)}},
	}
	var have trust
	if err := readJSON(k.dir.trust(), &have); err == nil && reflect.DeepEqual(have, want) {
		return false, nil
	}
	return true, writeJSON(k.dir.trust(), want)
}

// chooseUser gives the runner a user of engines that no other one here has, and
// that it keeps: the settings are the record of it.
func (k *keeper) chooseUser() error {
	k.fleet.uids.Lock()
	defer k.fleet.uids.Unlock()
	var own settings
	if err := readJSON(k.dir.config(), &own); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if k.fleet.config.EngineUID == 0 {
		return writeJSON(k.dir.config(), own)
	}
	taken := map[int]bool{}
	files, err := filepath.Glob(filepath.Join(k.fleet.config.Dir, "*", filepath.Base(k.dir.config())))
	if err != nil {
		return err
	}
	for _, file := range files {
		var other settings
		if err := readJSON(file, &other); err != nil {
			return err
		}
		taken[other.EngineUID] = true
	}
	for own.EngineUID = k.fleet.config.EngineUID; taken[own.EngineUID]; {
		own.EngineUID++
	}
	return writeJSON(k.dir.config(), own)
}

// provideSecret sees that a runner which is not enrolled can be. The secret is
// written before its hash is stored: after a crash in between, the database
// does not know it, and there is a new one.
func (k *keeper) provideSecret(ctx context.Context, enrolled bool) error {
	if k.dir.has(k.dir.enrolled()) {
		return nil
	}
	text, err := k.dir.secret()
	if err != nil {
		return fmt.Errorf("enrolment secret: %w", err)
	}
	works, err := k.works(ctx, text)
	if err != nil || works {
		return err
	}
	text, hash := newSecret()
	if err := durable.WriteFile(k.dir.enrolment(), []byte(text+"\n"), 0o600); err != nil {
		return fmt.Errorf("enrolment secret: %w", err)
	}
	err = k.fleet.store.Tx(ctx, k.orgID, func(ctx context.Context, tx *database.Tx) error {
		if err := tx.BuilderExpireEnrolments(ctx, k.runnerID); err != nil {
			return err
		}
		// A runner that has a key and lost its directory is replaced: the
		// machine is ours, so the consent is too.
		return tx.BuilderAddEnrolment(ctx, builderdb.BuilderAddEnrolmentParams{
			ID: id.New(id.Enrolment), RunnerID: k.runnerID, SecretHash: hash, Replaces: enrolled, Seconds: enrolmentLifetime.Seconds(),
		})
	})
	if err != nil {
		return fmt.Errorf("enrolment: %w", err)
	}
	k.log.InfoContext(ctx, "build runner may enrol", "replaces", enrolled)
	return nil
}

// works tells whether the secret in the directory can still enrol this runner:
// unused, or used with the key that is in the directory (its reply was lost).
func (k *keeper) works(ctx context.Context, secret string) (works bool, _ error) {
	if secret == "" {
		return false, nil
	}
	err := k.fleet.store.Tx(ctx, k.orgID, func(ctx context.Context, tx *database.Tx) error {
		row, err := tx.BuilderEnrolment(ctx, builderdb.BuilderEnrolmentParams{RunnerID: k.runnerID, SecretHash: hashSecret(secret)})
		if errors.Is(err, fault.ErrNotFound) {
			return nil
		}
		works = (row.State == model.EnrolmentOpen && !row.Expired) || (row.State == model.EnrolmentUsed && k.dir.has(k.dir.identity()))
		return err
	})
	return works, err
}

// Enrolment secrets are "ben_" and 43 characters of 62, over 256 bits.
const (
	secretPrefix   = "ben_"
	secretLength   = 43
	secretAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

func newSecret() (text string, hash []byte) {
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
	return string(out), hashSecret(string(out))
}

// hashSecret is what the database keeps of a secret.
func hashSecret(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}
