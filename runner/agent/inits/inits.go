// Package inits keeps what `terraform init` found out in one job for the next job of the
// same resource, so that a second plan of an unchanged module starts no init.
//
// The engine that left it ran vendor code, so it is a hint and nothing more: only the
// same resource gets it back, only while the module, the executables and the operator's
// configuration are the same, and the engine believes nothing in it (package terraform of
// the engine says what it compares). A file that is damaged or lost costs one init.
package inits

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/pkg/durable"
)

// MaxBytes is the largest file that is kept: a lock file with hundreds of providers has
// a few hundred kilobytes.
const MaxBytes = 1 << 20

// Name is the file's in the folders of a job: in/ for what is given, out/ for what is
// left.
const Name = "init.json"

// Basis is all that the outcome of an init depends on, as far as it is on this machine.
type Basis struct {
	// Artifact, Terraform and Engine are digests: of the module with its lock file, and of
	// the executables.
	Artifact  string `json:"artifact"`
	Terraform string `json:"terraform"`
	Engine    string `json:"engine"`
	// Config is a digest of Terraform's configuration, see ConfigDigest.
	Config string `json:"config"`
}

// ConfigDigest is a digest of the contents of Terraform's configuration file and of other
// settings that name mirrors and caches. A file that cannot be read counts as one with
// the reason in it: Terraform cannot read it either.
func ConfigDigest(path string, settings ...string) string {
	sum := sha256.New()
	if path != "" {
		raw, err := os.ReadFile(path)
		if err != nil {
			raw = []byte("\x00" + err.Error())
		}
		sum.Write(raw)
	}
	for _, s := range settings {
		sum.Write([]byte("\x00" + s))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Store is a directory with one file per resource, the agent's own. One engine works on
// a resource at a time, so nobody writes a file while another does.
type Store struct{ Dir string }

type kept struct {
	Basis Basis           `json:"basis"`
	Init  json.RawMessage `json:"init"`
}

// Get returns what the last init of a resource found out; nil when there is nothing that
// has this basis.
func (s Store) Get(resource string, b Basis) []byte {
	raw, err := os.ReadFile(s.path(resource))
	if err != nil {
		return nil
	}
	var k kept
	if json.Unmarshal(raw, &k) != nil || k.Basis != b {
		return nil
	}
	return k.Init
}

// Put keeps it, in the place of what was kept before. What is no JSON is not kept.
func (s Store) Put(resource string, b Basis, init []byte) error {
	raw, err := json.Marshal(kept{b, init})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	return durable.WriteFile(s.path(resource), raw, 0o600)
}

// path hashes the name, which is the control plane's.
func (s Store) path(resource string) string {
	sum := sha256.Sum256([]byte(resource))
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:16])+".json")
}
