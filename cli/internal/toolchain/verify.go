package toolchain

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"

	"github.com/berth-dev/berth/pkg/tfprogram"
)

// vendorKey is the key that HashiCorp signs its releases with, fingerprint
// C874 011F 0AB4 0511 0D02 1055 3436 5D94 72D7 468F, as their own installer
// (github.com/hashicorp/hc-install) carries it.
//
//go:embed hashicorp.asc
var vendorKey string

const (
	maxListBytes = 1 << 20 // the list of checksums and its signature are a few KB
)

// A release is one version at a source.
type release struct {
	from    source
	version string
}

// fetch gets the archive, checks it against what key signed and puts the program
// at target, in one rename: target is whole or absent.
func (r release) fetch(ctx context.Context, key, target string) error {
	sumsName := "terraform_" + r.version + "_SHA256SUMS"
	sums, err := r.readAll(ctx, sumsName)
	if err != nil {
		return err
	}
	sig, err := r.readAll(ctx, sumsName+".sig")
	if err != nil {
		return err
	}
	if err := checkSignature(key, sums, sig); err != nil {
		return fmt.Errorf("%s: %w: %w", sumsName, ErrUntrusted, err)
	}
	name := archiveName(r.version)
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
	return tfprogram.Unpack(archive.Name(), target)
}

func (r release) readAll(ctx context.Context, name string) ([]byte, error) {
	file, err := r.from.open(ctx, r.version, name)
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
func (r release) download(ctx context.Context, name string, to io.Writer) (string, error) {
	file, err := r.from.open(ctx, r.version, name)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(file, tfprogram.MaxBytes)); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
