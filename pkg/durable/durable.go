// Package durable replaces files so that a crash, of the process or of the
// machine, leaves the old contents or the new, never a part of them.
//
// It is not github.com/google/renameio because that does not sync the
// directory: the new contents are whole, but a crash may still bring the old
// ones back after a caller has acted on the new. It also prefers to write to
// TMPDIR, where what an interruption leaves is nobody's to remove. The rest of
// it is as short as this package.
package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile makes data the contents of the file at path and mode its
// permissions. It returns once both are on disk, also after a crash of the
// machine.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	return Replace(path, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Replace is WriteFile of what fill writes. Anyone who has the old file open, or
// runs it, keeps the old one; a link at path is replaced, not followed. When
// fill returns an error, the old file stays.
//
// The one error after which the new file is in place is that of Sync on the
// directory: then a crash may bring the old one back.
func Replace(path string, mode fs.FileMode, fill func(io.Writer) error) (err error) {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tmp.Close()
			_ = os.Remove(tmp.Name()) // gone when only the directory was not synced
		}
	}()
	if err := fill(tmp); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := errors.Join(tmp.Chmod(mode), tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return SyncDir(dir)
}

// SyncDir makes the names in a directory durable: of files that were made,
// renamed or removed there.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
