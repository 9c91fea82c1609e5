package datadir

import (
	"io/fs"
	"os"
)

// CloseTree takes the right to write from a tree that was unpacked just now.
func CloseTree(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() && !entry.Type().IsRegular() { // a symlink has no mode
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return root.Chmod(name, info.Mode().Perm()&^0o222)
	})
}
