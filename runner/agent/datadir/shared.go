package datadir

import (
	"errors"
	"io/fs"
	"os"
)

// Modes of what an engine may read and not write: it is its group's.
const (
	ModeOpenDir  = 0o750
	modeOpenFile = 0o640
)

// Lend lets a group read what stays root's.
func Lend(folder *os.Root, name string, entry fs.DirEntry, gid int) error {
	if err := folder.Lchown(name, -1, gid); err != nil {
		return err
	}
	switch {
	case entry.IsDir():
		return folder.Chmod(name, ModeOpenDir)
	case !entry.Type().IsRegular():
		return nil // a symlink has no mode
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	return folder.Chmod(name, modeOpenFile|info.Mode().Perm()&0o100|info.Mode().Perm()&0o100>>3)
}

// RemoveAll removes what is called name in a directory. An engine of the agent's
// own user may have closed directories to that user too.
func RemoveAll(dir *os.Root, name string) error {
	err := dir.RemoveAll(name)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	closed, openErr := dir.OpenRoot(name)
	if openErr != nil {
		return err
	}
	defer func() { _ = closed.Close() }()
	walkErr := fs.WalkDir(closed.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return closed.Chmod(name, 0o700) // before it is read
	})
	return errors.Join(walkErr, dir.RemoveAll(name))
}
