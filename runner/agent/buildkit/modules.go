package buildkit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/pkg/modulekeys"
)

// GiveModules puts into dir, which is in/build of the job, the org's credentials for
// private Terraform modules, if there are any. Its errors for people are of type
// *Refusal.
func (s *Service) GiveModules(org, dir string) error {
	if s == nil || s.cfg.Secrets == "" {
		return nil
	}
	text, err := readPrivate(filepath.Join(s.cfg.Secrets, org, modulekeys.File))
	if errors.Is(err, fs.ErrNotExist) { // Kubernetes mounts it among the build secrets
		text, err = readPrivate(filepath.Join(s.cfg.Secrets, org, "secrets", modulekeys.File))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = modulekeys.Parse(text)
	}
	if err != nil {
		return refuse("ask the operator of this builder to correct "+modulekeys.File+" of this org in BERTH_BUILD_SECRETS", "credentials of modules: %v", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, modulekeys.File), text, 0o600)
}

// hiddenOfModules are the values that GiveModules put into dir.
func hiddenOfModules(dir string) []string {
	raw, err := os.ReadFile(filepath.Join(dir, modulekeys.File))
	if err != nil {
		return nil
	}
	keys, _ := modulekeys.Parse(raw) // GiveModules has read it
	return keys.Secrets()
}
