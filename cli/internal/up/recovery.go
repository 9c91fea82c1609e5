package up

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/berth-dev/berth/pkg/recovery"
)

// RecoveryFile is where the recovery key of a local install is. On one machine the
// customer and the vendor are the same, so it lies in the data folder; elsewhere it
// belongs to another place than the runner.
func (l Layout) RecoveryFile(runnerID string) string {
	return filepath.Join(l.recovery(), runnerID+".key")
}

// recoveryKey is the public half of the install's recovery key: the one that its
// runner has already, or one that is made before the runner first starts. A runner
// that was there without one keeps going without: `berth-runner recovery new`.
// vouched is what the key has signed of the runner's own, if it has.
func (s *supervisor) recoveryKey(dir, id string) (public, vouched json.RawMessage, err error) {
	var before struct {
		Recovery json.RawMessage `json:"recovery"`
		Vouched  json.RawMessage `json:"vouched"`
	}
	found, err := readJSON(filepath.Join(dir, "trust.json"), &before)
	if err != nil || found && (before.Recovery == nil || before.Vouched != nil) {
		return before.Recovery, before.Vouched, err
	}
	path := s.Layout.RecoveryFile(id)
	key, err := loadRecovery(path)
	if found && errors.Is(err, fs.ErrNotExist) {
		return before.Recovery, nil, nil // its owner keeps it elsewhere
	}
	if errors.Is(err, fs.ErrNotExist) {
		if key, err = recovery.New(); err != nil {
			return nil, nil, err
		}
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			err = writeFile(path, []byte(key.String()+"\n"))
		}
		if err == nil {
			s.Say(fmt.Sprintf("✓ recovery key  %s (opens and replaces the install; keep a copy elsewhere)", path))
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("recovery key: %w", err)
	}
	public, err = json.Marshal(key.Public())
	return public, nil, err
}

// vouch has the recovery key sign the runner's own key, which the runner makes for
// that when it has none yet.
func (s *supervisor) vouch(ctx context.Context, dir, id string) error {
	path := s.Layout.RecoveryFile(id)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.around.runners, exeRunner), "--data", dir, "recovery", "vouch", "--recovery", path)
	cmd.Env = s.around.env(map[string]string{})
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("recovery key of runner %s: %w: %s", id, err, out)
	}
	return nil
}

func loadRecovery(path string) (*recovery.Key, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return recovery.Parse(string(text))
}
