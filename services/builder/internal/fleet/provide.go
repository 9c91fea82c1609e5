package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"

	"github.com/berth-dev/berth/pkg/durable"
	"github.com/berth-dev/berth/services/builder/internal/fleet/roster"
)

// provide makes the data directory what a runner needs to start: trust,
// settings and, until it is enrolled, a secret that works. It repairs what is
// missing and leaves alone what is there. moved says that the runner is to trust
// something else than before, which it learns at its next start.
func (k *keeper) provide(ctx context.Context) (moved bool, err error) {
	enrolled, err := k.fleet.roster.Enrolled(ctx, k.orgID, k.runnerID)
	if err != nil {
		return false, err
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
	want, err := k.fleet.roster.Trust(k.orgID)
	if err != nil {
		return false, err
	}
	var have roster.Trust
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
	text, hash := roster.NewSecret()
	if err := durable.WriteFile(k.dir.enrolment(), []byte(text+"\n"), 0o600); err != nil {
		return fmt.Errorf("enrolment secret: %w", err)
	}
	// A runner that has a key and lost its directory is replaced.
	if err := k.fleet.roster.Admit(ctx, k.orgID, k.runnerID, roster.Admission{Hash: hash, Replaces: enrolled}); err != nil {
		return err
	}
	k.log.InfoContext(ctx, "build runner may enrol", "replaces", enrolled)
	return nil
}

// works tells whether the secret in the directory can still enrol this runner:
// unused, or used with the key that is in the directory (its reply was lost).
func (k *keeper) works(ctx context.Context, secret string) (bool, error) {
	if secret == "" {
		return false, nil
	}
	state, err := k.fleet.roster.Look(ctx, k.orgID, k.runnerID, roster.HashSecret(secret))
	return state == roster.SecretOpen || (state == roster.SecretUsed && k.dir.has(k.dir.identity())), err
}
