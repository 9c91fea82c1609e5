// Package tfprogram knows the two tools that work on Terraform modules, Terraform and
// OpenTofu: which version of each Berth fetches where there is none, how their vendors
// publish and sign releases, and how a program is taken out of an archive.
package tfprogram

import (
	"archive/zip"
	"fmt"
	"io"

	"github.com/berth-dev/berth/pkg/durable"
)

const (
	// Version is the last release of Terraform that the engines are tested with.
	Version = "1.11.4"

	// OpenTofuVersion is the same for OpenTofu; dev/scripts/tofu.sh builds it.
	OpenTofuVersion = "1.12.6"

	// MaxBytes is the most that an archive, and the program in it, may have: they
	// are about 30 and 90 MB, OpenTofu's 35 and 115.
	MaxBytes = 300 << 20
)

// Unpack writes a program in a checked archive, by its name there, to target, in one
// rename: target is whole or absent. Everybody may run it.
func Unpack(archive, name, target string) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	defer func() { _ = z.Close() }()
	program, err := z.Open(name)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	defer func() { _ = program.Close() }()
	return durable.Replace(target, 0o755, func(w io.Writer) error {
		n, err := io.Copy(w, io.LimitReader(program, MaxBytes+1))
		if err == nil && n > MaxBytes {
			return fmt.Errorf("archive: the program in it has more than %d bytes", int64(MaxBytes))
		}
		return err
	})
}
