package tfprogram

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
)

const (
	maxListBytes = 1 << 20 // the list of checksums and its signature are a few KB
)

// ErrUntrusted says that an archive is not what the vendor signed. Nothing of it was
// unpacked.
var ErrUntrusted = errors.New("not what the vendor signed")

// A Source has the vendor's files of a version: the archive, the list of
// checksums, and its signature.
type Source interface {
	Open(ctx context.Context, version, name string) (io.ReadCloser, error)
}

// Release is one version at a source.
//
// The vendor's own installer (github.com/hashicorp/hc-install) does not do: it reads no
// directory, and it writes the program in place, where a process killed on the way
// leaves half of it.
type Release struct {
	Of      Vendor
	From    Source
	Version string
	Key     string // the armored public key to trust; "" for the vendor's
}

// Fetch gets the archive, checks it against the signed list of checksums and puts the
// program at target, in one rename: target is whole or absent. Archives that a killed
// process left are called .archive-* in target's directory.
func (r Release) Fetch(ctx context.Context, target string) error {
	sumsName := r.Of.SumsName(r.Version)
	sums, err := r.readAll(ctx, sumsName)
	if err != nil {
		return err
	}
	sig, err := r.readAll(ctx, r.Of.SignatureName(r.Version))
	if err != nil {
		return err
	}
	if err := checkSignature(cmp.Or(r.Key, r.Of.key), sums, sig); err != nil {
		return fmt.Errorf("%s: %w: %w", sumsName, ErrUntrusted, err)
	}
	name := r.Of.ArchiveName(r.Version)
	want, err := sumOf(sums, name)
	if err != nil {
		return fmt.Errorf("%s: %w", sumsName, err)
	}

	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	archive, err := os.CreateTemp(filepath.Dir(target), ".archive-*")
	if err != nil {
		return err
	}
	defer func() {
		_ = archive.Close()
		_ = os.Remove(archive.Name())
	}()
	got, err := r.download(ctx, name, archive)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%s: %w: sha256 is %s, signed is %s", name, ErrUntrusted, got, want)
	}
	return Unpack(archive.Name(), r.Of.Program, target)
}

func (r Release) readAll(ctx context.Context, name string) ([]byte, error) {
	file, err := r.From.Open(ctx, r.Version, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	raw, err := io.ReadAll(io.LimitReader(file, maxListBytes))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return raw, nil
}

// checkSignature says whether sig is a detached signature of list by key.
func checkSignature(key string, list, sig []byte) error {
	ring, err := openpgp.ReadArmoredKeyRing(strings.NewReader(key))
	if err != nil {
		return fmt.Errorf("read public key: %w", err)
	}
	_, err = openpgp.CheckDetachedSignature(ring, bytes.NewReader(list), bytes.NewReader(sig), nil)
	return err
}

// sumOf finds the checksum of a file in a list of "HEX  NAME" lines.
func sumOf(list []byte, name string) (string, error) {
	lines := bufio.NewScanner(bytes.NewReader(list))
	for lines.Scan() {
		if sum, file, ok := strings.Cut(lines.Text(), "  "); ok && file == name {
			return sum, nil
		}
	}
	return "", fmt.Errorf("%w: %s is not listed", ErrUntrusted, name)
}

// download copies a file and returns its sha256 in hex.
func (r Release) download(ctx context.Context, name string, to io.Writer) (string, error) {
	file, err := r.From.Open(ctx, r.Version, name)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(file, MaxBytes)); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
