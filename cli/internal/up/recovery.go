package up

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
func (s *supervisor) recoveryKey(dir, id string) (json.RawMessage, error) {
	var before struct {
		Recovery json.RawMessage `json:"recovery"`
	}
	found, err := readJSON(filepath.Join(dir, "trust.json"), &before)
	if err != nil || found {
		return before.Recovery, err
	}
	path := s.Layout.RecoveryFile(id)
	key, err := loadRecovery(path)
	if errors.Is(err, fs.ErrNotExist) {
		if key, err = recovery.New(); err != nil {
			return nil, err
		}
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			err = writeFile(path, []byte(key.String()+"\n"))
		}
		if err == nil {
			s.Say(fmt.Sprintf("✓ recovery key  %s (opens and replaces the install; keep a copy elsewhere)", path))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("recovery key: %w", err)
	}
	return json.Marshal(key.Public())
}

func loadRecovery(path string) (*recovery.Key, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return recovery.Parse(string(text))
}
