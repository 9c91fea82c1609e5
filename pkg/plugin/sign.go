package plugin

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/berth-dev/berth/pkg/capsule"
)

// SignatureType is the payload type of the envelope in plugin.sig.json.
const SignatureType = "application/vnd.berth.plugin.v1+json"

// ErrSignature is wrapped by every refusal of Verify.
var ErrSignature = errors.New("signature of the plugin refused")

// Statement is what the author of a plugin signs: all of its files.
type Statement struct {
	Type    string `json:"type"`
	Version string `json:"version"`
	// Files are the digests of all files but the signature, by path, "sha256:…".
	Files map[string]string `json:"files"`
}

// Sign makes the envelope of plugin.sig.json for a directory.
func Sign(key ed25519.PrivateKey, dir fs.FS) (capsule.Envelope, error) {
	s, err := statementOf(dir)
	if err != nil {
		return capsule.Envelope{}, err
	}
	pub, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		return capsule.Envelope{}, errors.New("sign: not an Ed25519 key")
	}
	return capsule.Sign(key, capsule.KeyID(pub), SignatureType, s)
}

// Verify checks that signer, a public key as base64 or PEM, has signed exactly the
// files that are in dir. A file that is missing, changed or was not signed is an
// error, and so is anything that is no file: the error wraps ErrSignature and says
// which.
func Verify(signer string, dir fs.FS) (Statement, error) {
	var signed Statement
	pub, err := capsule.ParsePublicKey(signer)
	if err != nil {
		return signed, fmt.Errorf("%w: the signer's key: %w", ErrSignature, err)
	}
	raw, err := readFile(dir, SignatureFile)
	if errors.Is(err, fs.ErrNotExist) {
		return signed, fmt.Errorf("%w: it is not signed: there is no %s", ErrSignature, SignatureFile)
	}
	if err != nil {
		return signed, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	var envelope capsule.Envelope
	if err := json.Unmarshal(raw, &envelope); err != nil {
		return signed, fmt.Errorf("%w: %s: %w", ErrSignature, SignatureFile, err)
	}
	keys := map[string]ed25519.PublicKey{capsule.KeyID(pub): pub}
	if _, err := capsule.Verify(keys, SignatureType, envelope, &signed); err != nil {
		return signed, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	is, err := statementOf(dir)
	if err != nil {
		return signed, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	if err := signed.compare(is); err != nil {
		return signed, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	return signed, nil
}

// compare says what is not as it was signed.
func (s Statement) compare(is Statement) error {
	if s.Type != is.Type || s.Version != is.Version {
		return fmt.Errorf("plugin %s %s was signed as %s %s", is.Type, is.Version, s.Type, s.Version)
	}
	for _, name := range slices.Sorted(maps.Keys(is.Files)) {
		switch want := s.Files[name]; want {
		case "":
			return fmt.Errorf("%s was not signed", name)
		case is.Files[name]:
		default:
			return fmt.Errorf("%s is %s, %s was signed", name, is.Files[name], want)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		if is.Files[name] == "" {
			return fmt.Errorf("%s was signed and is not there", name)
		}
	}
	return nil
}

func statementOf(dir fs.FS) (Statement, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return Statement{}, err
	}
	s := Statement{Type: m.Type, Version: m.Version, Files: map[string]string{}}
	err = fs.WalkDir(dir, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() || name == SignatureFile:
			return nil
		case !entry.Type().IsRegular():
			return fmt.Errorf("%s is no file: a plugin has files and directories only", name)
		}
		s.Files[name], err = digestOf(dir, name)
		return err
	})
	return s, err
}

func digestOf(dir fs.FS, name string) (string, error) {
	f, err := dir.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}
