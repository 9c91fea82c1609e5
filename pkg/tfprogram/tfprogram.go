// Package tfprogram knows the Terraform that Berth fetches where there is none: its
// version, and how its program is taken out of the vendor's archive. Who fetches
// checks the archive first, each in its own way.
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

	// MaxBytes is the most that an archive, and the program in it, may have: they
	// are about 30 and 90 MB.
	MaxBytes = 300 << 20
)

// Unpack writes the program in a checked archive to target, in one rename: target is
// whole or absent. Everybody may run it.
func Unpack(archive, target string) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	defer func() { _ = z.Close() }()
	program, err := z.Open("terraform")
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
