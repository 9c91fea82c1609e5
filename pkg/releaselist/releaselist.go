// Package releaselist reads the signed list of what a release of Berth consists
// of: its archives by SHA256 and its images by digest. dev/release writes it.
//
// The list is a DSSE envelope, as those of orders are. Who verifies it brings
// the key: one that came with the list proves nothing.
package releaselist

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/pkg/capsule"
)

const (
	// FileName is the list's name, next to the files that it lists.
	FileName = "release.json"

	// PayloadType is what the envelope says it holds.
	PayloadType = "application/vnd.berth.release.v1+json"
)

// ErrChanged is wrapped when a file is not what the list says.
var ErrChanged = errors.New("not the file that was signed")

// List is what a release consists of.
type List struct {
	Version string  `json:"version"`
	Commit  string  `json:"commit"`
	Created string  `json:"created"` // RFC 3339, the time of the commit
	Files   []File  `json:"files"`
	Images  []Image `json:"images"`
}

// File is one that is published next to the list.
type File struct {
	Name   string `json:"name"` // without a folder
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"` // bytes
}

// Image is a container image, wherever it is.
type Image struct {
	Name   string `json:"name"`
	Digest string `json:"digest"` // of its index
}

// Verify opens a list that one of keys signed. Errors wrap capsule.ErrSignature
// when none did.
func Verify(raw []byte, keys map[string]ed25519.PublicKey) (List, error) {
	list, _, err := Signed(raw, keys)
	return list, err
}

// Signed is Verify, and says which key it was.
func Signed(raw []byte, keys map[string]ed25519.PublicKey) (list List, keyID string, err error) {
	var envelope capsule.Envelope
	if err := json.Unmarshal(raw, &envelope); err != nil {
		return List{}, "", fmt.Errorf("not a signed list: %w", err)
	}
	keyID, err = capsule.Verify(keys, PayloadType, envelope, &list)
	return list, keyID, err
}

// RunnerArchive is the name of the file with only what a runner needs, its two
// executables, for a platform such as linux_amd64.
func RunnerArchive(version, platform string) string {
	return "berth-runner_" + version + "_" + platform + ".tar.gz"
}

// File is the listed file of that name.
func (l List) File(name string) (File, bool) {
	for _, file := range l.Files {
		if file.Name == name {
			return file, true
		}
	}
	return File{}, false
}

// Claimed reads what a list says without asking who signed it, and the ids of the
// keys that it names. It is for those who pass a list on: nothing may be run by it.
func Claimed(raw []byte) (list List, keys []string, err error) {
	var envelope capsule.Envelope
	if err := json.Unmarshal(raw, &envelope); err != nil {
		return List{}, nil, fmt.Errorf("not a signed list: %w", err)
	}
	if envelope.PayloadType != PayloadType {
		return List{}, nil, fmt.Errorf("not the list of a release but %q", envelope.PayloadType)
	}
	payload, err := base64.StdEncoding.DecodeString(envelope.Payload)
	if err != nil {
		return List{}, nil, fmt.Errorf("not a signed list: %w", err)
	}
	if err := json.Unmarshal(payload, &list); err != nil {
		return List{}, nil, fmt.Errorf("not the list of a release: %w", err)
	}
	for _, signature := range envelope.Signatures {
		keys = append(keys, signature.KeyID)
	}
	return list, keys, nil
}

// Check compares the files of a folder with the list and returns the names of
// those that are there. A file that is not there is no error: nobody needs the
// archives of all platforms. One that differs is.
func (l List) Check(dir string) (good []string, err error) {
	for _, file := range l.Files {
		if file.Name != filepath.Base(file.Name) {
			return good, fmt.Errorf("the list names %q, which is not a plain file name", file.Name)
		}
		sum, size, err := SumOf(filepath.Join(dir, file.Name))
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return good, err
		case sum != file.SHA256 || size != file.Size:
			return good, fmt.Errorf("%s: %w", file.Name, ErrChanged)
		default:
			good = append(good, file.Name)
		}
	}
	return good, nil
}

// SumOf is the SHA256 of a file, in hex, and its size in bytes.
func SumOf(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	size, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), size, err
}
