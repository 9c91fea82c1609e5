// Package states keeps the newest Terraform states of each resource on the customer's
// machine, sealed as the control plane has them: what a vendor that is down, or loses
// them, cannot take away. It also reads them for the customer.
package states

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/runner/agent/datadir"
)

// Versions is how many states of a resource are kept. They are whole states, so that the
// directory takes this many times what the states take.
const Versions = 5

// Kept is a state that the control plane has taken, or has given out.
type Kept struct {
	ResourceID string    `json:"resource_id"`
	Kind       string    `json:"kind"` // sandbox or component
	Name       string    `json:"name"`
	Lineage    string    `json:"lineage"`
	Serial     int64     `json:"serial"`
	Digest     string    `json:"digest"` // salted, of the state in clear
	JobID      string    `json:"job_id"` // that wrote it, or read it first on this machine
	At         time.Time `json:"at"`
	// Tool is what the job that wrote it worked with, "terraform" or "opentofu"; "" where
	// this machine does not know it.
	Tool   string `json:"tool,omitempty"`
	Sealed []byte `json:"sealed,omitempty"`
}

// Store is the directory, the agent's own. The customer's commands read it at any time.
type Store struct{ Dir string }

// Put keeps a state and drops the oldest ones of its resource. A state that is there
// already stays as it is.
func (s Store) Put(k Kept) error {
	dir := s.of(k.ResourceID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(k.Lineage + "\x00" + k.Digest))
	path := filepath.Join(dir, fmt.Sprintf("%020d-%s.json", k.Serial, hex.EncodeToString(sum[:4])))
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := datadir.WriteJSON(path, k); err != nil {
		return err
	}
	all, err := s.history(dir)
	if err != nil {
		return err
	}
	var failed []error
	for _, old := range all[min(Versions, len(all)):] {
		failed = append(failed, os.Remove(filepath.Join(dir, old.file)))
	}
	return errors.Join(failed...)
}

type onDisk struct {
	Kept
	file string
}

// history reads the states of a resource, the newest first. One that is damaged is left
// out.
func (s Store) history(dir string) ([]onDisk, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []onDisk
	for _, path := range files {
		k := onDisk{file: filepath.Base(path)}
		if found, err := datadir.ReadJSON(path, &k.Kept); err == nil && found {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b onDisk) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.Serial, a.Serial))
	})
	return all, nil
}

// List returns the newest state of each resource, by kind and name.
func (s Store) List() ([]Kept, error) {
	dirs, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Kept
	for _, d := range dirs {
		all, err := s.history(filepath.Join(s.Dir, d.Name()))
		if err != nil {
			return nil, err
		}
		if len(all) > 0 {
			list = append(list, all[0].Kept)
		}
	}
	slices.SortFunc(list, func(a, b Kept) int {
		return cmp.Or(strings.Compare(b.Kind, a.Kind), strings.Compare(a.Name, b.Name), strings.Compare(a.ResourceID, b.ResourceID))
	})
	return list, nil
}

// ErrNone says that there is no such state. The message says what there is.
var ErrNone = errors.New("no such state is kept here")

// History returns the states of one resource, the newest first. It is named by its name
// or id.
func (s Store) History(resource string) ([]Kept, error) {
	list, err := s.List()
	if err != nil {
		return nil, err
	}
	var found []Kept
	var names []string
	for _, k := range list {
		names = append(names, k.Name)
		if k.ResourceID == resource || k.Name == resource {
			found = append(found, k)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%w: of %q; there are those of: %s", ErrNone, resource, cmp.Or(strings.Join(names, ", "), "nothing"))
	case 1:
	default:
		return nil, fmt.Errorf("%d resources are called %s: name one by its id, such as %s", len(found), resource, found[0].ResourceID)
	}
	all, err := s.history(s.of(found[0].ResourceID))
	if err != nil {
		return nil, err
	}
	kept := make([]Kept, len(all))
	for i, k := range all {
		kept[i] = k.Kept
	}
	return kept, nil
}

// Find returns one state of a resource: the newest, or that with a serial, written in
// decimal.
func (s Store) Find(resource, serial string) (Kept, error) {
	all, err := s.History(resource)
	if err != nil || serial == "" {
		if err == nil {
			return all[0], nil
		}
		return Kept{}, err
	}
	var serials []string
	for _, k := range all {
		text := strconv.FormatInt(k.Serial, 10)
		if text == serial {
			return k, nil
		}
		serials = append(serials, text)
	}
	return Kept{}, fmt.Errorf("%w: of %s with serial %s; there are %s", ErrNone, resource, serial, strings.Join(serials, ", "))
}

// of is the directory of a resource. It hashes the id, which is the control plane's.
func (s Store) of(resource string) string {
	sum := sha256.Sum256([]byte(resource))
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:16]))
}
