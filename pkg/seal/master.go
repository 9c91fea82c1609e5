package seal

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/pkg/durable"
)

// masterHeader starts the key file, so that a wrong file is recognised.
const masterHeader = "berth-master-key-v1:"

// masterLen is the length of the key in bytes: 256 bits.
const masterLen = 32

// ErrWidePermissions is returned for a master key that others could read.
var ErrWidePermissions = errors.New("master key file must be readable by its owner only (chmod 600)")

// MasterKey is the one secret of the control plane from which the at-rest key
// of each org is derived. It has no exported bytes and prints as a constant.
type MasterKey struct {
	secret [masterLen]byte
}

// LoadOrCreateMasterKey reads the key at path, or makes one with mode 0600
// when there is no file. Services that start at the same moment end up with
// the same key. A file that group or others may access, or that is not a
// regular file, is refused; but root's file, as a secret that Kubernetes mounts,
// may let a group read it that we are in.
func LoadOrCreateMasterKey(path string) (*MasterKey, error) {
	key, err := loadMasterKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := createMasterKey(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create master key: %w", err)
	}
	return loadMasterKey(path)
}

// Org derives the identity that seals what is stored for one org. The same
// key and org always give the same identity; from one org's identity neither
// the master key nor another org's identity can be found.
func (k *MasterKey) Org(orgID string) (*Identity, error) {
	if orgID == "" {
		return nil, errors.New("derive org key: empty org id")
	}
	scalar, err := hkdf.Key(sha256.New, k.secret[:], nil, "berth/seal/org/"+orgID, masterLen)
	if err != nil {
		return nil, fmt.Errorf("derive org key: %w", err)
	}
	id, err := IdentityFrom(scalar)
	if err != nil {
		return nil, fmt.Errorf("derive org key: %w", err)
	}
	return id, nil
}

// Signer derives the key that signs for one org under a label, such as "orders".
// The same key, label and org always give the same one.
func (k *MasterKey) Signer(label, orgID string) (ed25519.PrivateKey, error) {
	if label == "" || orgID == "" {
		return nil, errors.New("derive signing key: empty label or org id")
	}
	seed, err := hkdf.Key(sha256.New, k.secret[:], nil, "berth/sign/"+label+"/org/"+orgID, ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("derive signing key: %w", err)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// Format keeps the secret out of logs and errors.
func (k MasterKey) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "master key") }

// wide tells whether others than self could read the key, or change it.
func wide(info fs.FileInfo, self int) bool {
	mode := info.Mode().Perm()
	if self != 0 && rootOwns(info) {
		mode &^= 0o040 // the only way in which we can read it
	}
	return mode&0o077 != 0
}

func loadMasterKey(path string) (*MasterKey, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open master key: %w", err)
	}
	defer f.Close()
	info, err := f.Stat() // of what is open, not of what the path names by now
	if err != nil {
		return nil, fmt.Errorf("open master key: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("master key %s is not a regular file", path)
	}
	if wide(info, os.Geteuid()) {
		return nil, fmt.Errorf("%s has mode %04o: %w", path, info.Mode().Perm(), ErrWidePermissions)
	}
	raw, err := io.ReadAll(io.LimitReader(f, 1024))
	if err != nil {
		return nil, fmt.Errorf("read master key: %w", err)
	}
	text, ok := strings.CutPrefix(strings.TrimSpace(string(raw)), masterHeader)
	secret, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(secret) != masterLen {
		return nil, fmt.Errorf("%s is not a master key of Berth", path)
	}
	key := new(MasterKey)
	copy(key.secret[:], secret)
	return key, nil
}

// createMasterKey writes a whole file next to path and links it into place:
// path either does not exist or is complete, and the first writer wins.
func createMasterKey(path string) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".master-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()

	secret := make([]byte, masterLen)
	_, _ = rand.Read(secret)
	if _, err := f.WriteString(masterHeader + base64.StdEncoding.EncodeToString(secret) + "\n"); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil {
		return err
	}
	return durable.SyncDir(dir)
}
