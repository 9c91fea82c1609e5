// Package secretstore keeps the values of the secrets that the customer gives to an
// install's runner, or has it make: one file each, sealed to the machine and the recovery
// key, replaced whole. What a value is allowed to be is the business of package
// customersecret.
//
// The agent and the customer's command write to it at the same time, so every change is
// made under a lock of files. A kill leaves the old value or the new one.
package secretstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/customersecret"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// ErrNotThere is returned when nothing of that name is kept.
var ErrNotThere = errors.New("no such secret")

// Store is the directory of an install's secrets.
type Store struct {
	Dir    string
	Runner datadir.Runner
	Keys   datadir.Keys
	Now    func() time.Time
}

// Kept is one secret as it stands on disk.
type Kept struct {
	customersecret.Version
	// Length is that of the value, in bytes. It stays here.
	Length int `json:"length,omitempty"`
	// Sealed is the value for its SecretPurpose, as JSON, nil without one.
	Sealed []byte `json:"sealed,omitempty"`
	// Earlier are values of before, the newest first. No job gets one; but states and
	// what is deployed may still have them, so they are kept out of logs and plans.
	Earlier []Earlier `json:"earlier,omitempty"`
}

// Earlier is a value of before.
type Earlier struct {
	Version int    `json:"version"`
	Sealed  []byte `json:"sealed"`
}

// keptEarlier is how many values of before are kept of a secret.
const keptEarlier = 20

// left are the values of before, once k has another one, or none.
func (k Kept) left() []Earlier {
	if !k.Set {
		return k.Earlier
	}
	all := append([]Earlier{{k.Version.Version, k.Sealed}}, k.Earlier...)
	return all[:min(len(all), keptEarlier)]
}

const (
	declaredFile = "declared" // those of secrets end in suffix
	lockFile     = "lock"
	suffix       = ".json"
)

// Declared is what the newest release says of secrets, in its order.
func (s Store) Declared() (list []customersecret.Declaration, err error) {
	_, err = datadir.ReadJSON(filepath.Join(s.Dir, declaredFile), &list)
	return list, err
}

// Declaration is what the newest release says of one secret; found is false for one that it
// does not have, and before the first release.
func (s Store) Declaration(name string) (d customersecret.Declaration, found bool, err error) {
	list, err := s.Declared()
	i := slices.IndexFunc(list, func(d customersecret.Declaration) bool { return d.Name == name })
	if err != nil || i < 0 {
		return d, false, err
	}
	return list[i], true, nil
}

// Declare takes over what a release says, and makes the values that the runner is to make:
// those that are there stay, but for an app's default that has changed.
func (s Store) Declare(list []customersecret.Declaration) error {
	for _, d := range list {
		if !customersecret.ValidName(d.Name) {
			return fmt.Errorf("the name of a secret is not valid: %q", d.Name)
		}
	}
	return s.locked(func() error {
		if len(list) == 0 {
			return datadir.Remove(filepath.Join(s.Dir, declaredFile))
		}
		if err := datadir.WriteJSON(filepath.Join(s.Dir, declaredFile), list); err != nil {
			return err
		}
		for _, d := range list {
			if err := s.make(d); err != nil {
				return err
			}
		}
		return nil
	})
}

// make gives a secret the value that it has without the customer, if it needs one.
func (s Store) make(d customersecret.Declaration) error {
	old, err := s.Get(d.Name)
	if err != nil && !errors.Is(err, ErrNotThere) {
		return err
	}
	switch {
	case d.AutoGenerate && !old.Set:
		_, err = s.write(d.Name, customersecret.Generate(d.Format), customersecret.ByRunner)
	case d.Default != nil && *d.Default != "" && (!old.Set || old.SetBy == customersecret.ByDefault && old.Digest != customersecret.Digest(s.Keys.Salt, d.Name, *d.Default)):
		_, err = s.write(d.Name, *d.Default, customersecret.ByDefault)
	default:
		return nil
	}
	return err
}

// Set keeps a new value and returns its version. The value that is there already is no
// new version.
func (s Store) Set(name, value, by string) (v customersecret.Version, err error) {
	d, _, err := s.Declaration(name)
	if err != nil {
		return v, err
	}
	if err := customersecret.Check(d.Format, value); err != nil {
		return v, err
	}
	err = s.locked(func() error {
		old, err := s.Get(name)
		if err != nil && !errors.Is(err, ErrNotThere) {
			return err
		}
		if old.Set && old.Digest == customersecret.Digest(s.Keys.Salt, name, value) {
			v = old.Version
			return nil
		}
		v, err = s.write(name, value, by)
		return err
	})
	return v, err
}

// Unset takes a value away. The version rises, so that the next value has another one.
func (s Store) Unset(name string) error {
	return s.locked(func() error {
		old, err := s.Get(name)
		if err != nil || !old.Set {
			return err
		}
		old.Earlier = old.left()
		old.Version.Version++
		old.Set, old.Digest, old.Sealed, old.Length, old.SetBy, old.SetAt = false, "", nil, 0, customersecret.ByCustomer, s.Now().UTC()
		return datadir.WriteJSON(s.path(name), old)
	})
}

// Get reads a secret, without opening it: ErrNotThere when nothing is kept of it.
func (s Store) Get(name string) (Kept, error) {
	if !customersecret.ValidName(name) {
		return Kept{}, fmt.Errorf("%q cannot be the name of a secret", name)
	}
	var k Kept
	found, err := datadir.ReadJSON(s.path(name), &k)
	switch {
	case err != nil:
		return Kept{}, err
	case !found:
		return Kept{}, ErrNotThere
	case k.Name != name:
		return Kept{}, fmt.Errorf("%s is of another secret", s.path(name))
	}
	return k, nil
}

// Open is the value of a secret, which is sealed for its name and version: a file that was
// put in the place of another one does not open.
func (s Store) Open(k Kept) (string, error) {
	plain, err := s.Keys.Open(interpolate.SecretPurpose(s.Runner.OrgID, s.Runner.InstallID, k.Name, k.Version.Version), k.Sealed)
	if err != nil {
		return "", fmt.Errorf("secret %s: %w", k.Name, err)
	}
	var value string
	if json.Unmarshal(plain, &value) != nil { // the cause could quote it
		return "", fmt.Errorf("secret %s is damaged", k.Name)
	}
	return value, nil
}

// List is what may be known of all secrets that are kept, by name.
func (s Store) List() ([]customersecret.Version, error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []customersecret.Version
	for _, e := range entries {
		name, isSecret := strings.CutSuffix(e.Name(), suffix)
		if !isSecret || !customersecret.ValidName(name) {
			continue
		}
		k, err := s.Get(name)
		if err != nil {
			return nil, err
		}
		list = append(list, k.Version)
	}
	return list, nil
}

func (s Store) write(name, value, by string) (customersecret.Version, error) {
	old, err := s.Get(name)
	if err != nil && !errors.Is(err, ErrNotThere) {
		return customersecret.Version{}, err
	}
	k := Kept{Version: customersecret.Version{
		Name: name, Version: old.Version.Version + 1, Set: true, Digest: customersecret.Digest(s.Keys.Salt, name, value), SetBy: by, SetAt: s.Now().UTC(),
	}, Length: len(value), Earlier: old.left()}
	if k.Sealed, err = s.seal(name, value, k.Version.Version); err != nil {
		return customersecret.Version{}, err
	}
	return k.Version, datadir.WriteJSON(s.path(name), k)
}

func (s Store) seal(name, value string, version int) ([]byte, error) {
	plain, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return seal.Seal(s.Keys.Recipients(), interpolate.SecretPurpose(s.Runner.OrgID, s.Runner.InstallID, name, version), plain)
}

func (s Store) path(name string) string { return filepath.Join(s.Dir, name+suffix) }

// locked does something while nobody else changes the store.
func (s Store) locked(do func() error) error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	f, err := datadir.AwaitFlock(filepath.Join(s.Dir, lockFile))
	if err != nil {
		return err
	}
	defer f.Close()
	return do()
}
