package plugin

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// StateDir is where a plugin with the permission for it finds its state, below the
// directory of its job. BERTH_STATE_DIR names it.
const StateDir = "work/state"

// What a state may be at most; the size is in bytes.
const (
	MaxStateFiles = 1000
	MaxStateSize  = 16 << 20
)

// State is what a plugin keeps between its jobs: files by path.
type State map[string][]byte

// ReadState reads the state of a directory. Files and directories whose names begin
// with a dot are left out, so that a plugin can write a file under such a name and
// rename it. Anything that is neither file nor directory, and whatever is over the
// limits, is an error that quotes no content.
func ReadState(dir fs.FS) (State, error) {
	s, left := State{}, int64(MaxStateSize)
	err := fs.WalkDir(dir, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case strings.HasPrefix(path.Base(name), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		case !entry.Type().IsRegular():
			return fmt.Errorf("%q is no file: a state has files and directories only", name)
		case len(s) == MaxStateFiles:
			return fmt.Errorf("it has more than %d files", MaxStateFiles)
		}
		f, err := dir.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		raw, err := io.ReadAll(io.LimitReader(f, left+1))
		if left -= int64(len(raw)); left < 0 {
			return fmt.Errorf("it is larger than %d bytes", MaxStateSize)
		}
		s[name] = raw
		return err
	})
	return s, err
}

// Write puts the state into dir, which it makes.
func (s State) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if !fs.ValidPath(name) || name == "." {
			return errors.New("the state has a file with a path that is not possible")
		}
		if err := root.MkdirAll(filepath.FromSlash(path.Dir(name)), 0o700); err != nil {
			return err
		}
		if err := root.WriteFile(filepath.FromSlash(name), s[name], 0o600); err != nil {
			return err
		}
	}
	return nil
}
