package terraform

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/go-version"

	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/module"
)

// What Berth says in the place of the module: override files, which Terraform reads
// after all others, in the order of their names. OpenTofu would read one of the module
// that ends in .tofu.json in the place of one that ends in .tf.json.
const (
	backendFile       = "berth_backend_override.tf.json"
	backendFileOfTofu = "berth_backend_override.tofu.json"
	versionFile       = "berth_version_override.tf.json"
	versionFileOfTofu = "berth_version_override.tofu.json"
)

// ours tells whether Berth wrote a file of the workspace, by its path there.
func ours(name string) bool {
	base := filepath.Base(name)
	return base == backendFile || base == backendFileOfTofu || base == versionFile || base == versionFileOfTofu
}

// Remedies for blocks of a module.
const (
	stateRemedy      = "remove that block: Berth keeps the state for the install"
	encryptionRemedy = "remove that block: Berth seals the state to the install"
)

// keepStateIn puts a backend in the place of the one that the module names, if it names
// one: the state of an install is Berth's. A module that would have the last word is
// refused.
func (w *workspace) keepStateIn(j *job.Job, backend string) error {
	if err := checkOverrides(w.module); err != nil {
		return job.Wrongf(stateRemedy, "the module of %s: %v", j.Subject(), err)
	}
	logBackend(j, w.module)
	override := map[string]any{"terraform": map[string]any{"backend": map[string]any{backend: map[string]any{}}}}
	name := backendFile
	if isOpenTofu(j) {
		name = backendFileOfTofu
	}
	return job.WriteJSON(filepath.Join(w.dir, name), override)
}

// checkOverrides refuses a backend in an override file: such files win by their names,
// so it might come after ours.
func checkOverrides(m *module.Module) error {
	if file, _, _ := strings.Cut(m.BackendAt, ":"); m.Backend != "" && module.IsOverride(file) {
		return fmt.Errorf("%s: it declares in an override file where its state is kept (%q): remove that block", m.BackendAt, m.Backend)
	}
	return nil
}

// checkEncryption refuses a module that has OpenTofu encrypt states and plans.
func checkEncryption(m *module.Module) error {
	if m.EncryptionAt != "" {
		return fmt.Errorf("%s: it encrypts its state; %s", m.EncryptionAt, encryptionRemedy)
	}
	return nil
}

// logBackend says that a backend of the module has no effect.
func logBackend(j *job.Job, m *module.Module) {
	if m.Backend != "" && m.Backend != "http" {
		j.Logf("%s: the module keeps its state in %q; that block has no effect here: Berth keeps the state for the install", m.BackendAt, m.Backend)
	}
}

// anyVersion lets the Terraform of a rehearsal take a module whose required_version
// does not allow it, and the modules that it calls by path. Those of others it leaves:
// what Terraform says of them is the answer. It returns the first version that it sets
// aside, "" for none.
func anyVersion(t tree, have string) (string, error) {
	return t.anyVersion(".", have, map[string]bool{})
}

func (t tree) anyVersion(dir, have string, seen map[string]bool) (set string, _ error) {
	if seen[dir] {
		return "", nil
	}
	seen[dir] = true
	m, err := module.Read(filepath.Join(t.root, dir), t.openTofu)
	if errors.Is(err, module.ErrNoModule) || errors.Is(err, os.ErrNotExist) {
		return "", nil // Terraform says so
	}
	if err != nil {
		return "", err
	}
	if !allows(m.Versions, have) {
		set = strings.Join(m.Versions, ", ")
		name := versionFile
		if t.openTofu {
			name = versionFileOfTofu
		}
		override := map[string]any{"terraform": map[string]any{"required_version": ">= 0"}}
		if err := job.WriteJSON(filepath.Join(t.root, dir, name), override); err != nil {
			return "", err
		}
	}
	for _, call := range m.Calls {
		called := filepath.Join(dir, filepath.FromSlash(call.Source))
		if !call.Local() || !filepath.IsLocal(called) {
			continue
		}
		other, err := t.anyVersion(called, have, seen)
		if err != nil {
			return "", err
		}
		set = cmp.Or(set, other)
	}
	return set, nil
}

// allows tells whether a Terraform fits what a module requires.
func allows(required []string, have string) bool {
	v, err := version.NewVersion(have)
	if err != nil {
		return true // Terraform decides
	}
	for _, one := range required {
		allowed, err := version.NewConstraint(one)
		if err != nil {
			return true // Terraform says what is wrong with it
		}
		if !allowed.Check(v) {
			return false
		}
	}
	return true
}
