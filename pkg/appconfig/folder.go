package appconfig

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Limits on what is read from an app folder. They are far above what real apps
// have and keep a wrong directory from filling the memory.
const (
	MaxFileBytes   = 4 << 20  // one file
	MaxFolderFiles = 10_000   // all files that are read
	MaxFolderBytes = 64 << 20 // all of them together
)

var (
	errOutside  = errors.New("leaves the app folder")
	errTooMany  = fmt.Errorf("the app folder has more than %d files to read", MaxFolderFiles)
	errTooLarge = fmt.Errorf("the files of the app folder are together larger than %d MiB", MaxFolderBytes>>20)
	errUsed     = fmt.Errorf("the files that keys name are together larger than %d MiB, each counted as often as it is named", MaxFolderBytes>>20)
)

// folder reads an app folder within the limits and remembers what it read. It
// never follows a symlink out of the folder.
type folder struct {
	fsys  fs.FS
	files map[string][]byte
	total int64
	plain map[string]bool // directories that are no symlinks
}

func newFolder(fsys fs.FS) *folder {
	return &folder{fsys: fsys, files: map[string][]byte{}, plain: map[string]bool{}}
}

// read returns a file's contents; reading it again costs nothing.
func (f *folder) read(name string) ([]byte, error) {
	if data, ok := f.files[name]; ok {
		return data, nil
	}
	if err := f.allowed(name); err != nil {
		return nil, err
	}
	file, err := f.fsys.Open(name)
	if err != nil {
		return nil, shortPathError(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, shortPathError(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(file, MaxFileBytes+1))
	if err != nil {
		return nil, shortPathError(err)
	}
	switch {
	case len(data) > MaxFileBytes:
		return nil, fmt.Errorf("is larger than %d MiB", MaxFileBytes>>20)
	case len(f.files) >= MaxFolderFiles:
		return nil, errTooMany
	case f.total+int64(len(data)) > MaxFolderBytes:
		return nil, errTooLarge
	}
	f.files[name] = data
	f.total += int64(len(data))
	return data, nil
}

// exists tells whether there is a file or directory of this name.
func (f *folder) exists(name string) bool {
	_, err := fs.Stat(f.fsys, name)
	return err == nil
}

// isDir tells whether a name is a directory inside the folder.
func (f *folder) isDir(name string) bool {
	if f.allowed(name) != nil {
		return false
	}
	info, err := fs.Stat(f.fsys, name)
	return err == nil && info.IsDir()
}

// tomlFiles lists the TOML files below a directory, sorted. It visits at most
// MaxFolderFiles entries and does not follow symlinks to directories.
func (f *folder) tomlFiles(dir string) ([]string, error) {
	var names []string
	visited := 0
	err := fs.WalkDir(f.fsys, dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && name == dir && errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return shortPathError(err)
		}
		if visited++; visited > MaxFolderFiles {
			return errTooMany
		}
		if entry.IsDir() && entry.Name() == ".terraform" {
			return fs.SkipDir
		}
		if !entry.IsDir() && path.Ext(name) == ".toml" {
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

// allowed refuses names that leave the folder, also through symlinks. A file
// system that cannot read links (an opened bundle) has none.
func (f *folder) allowed(name string) error {
	if !fs.ValidPath(name) {
		return errOutside
	}
	if isReserved(name) {
		return errReserved
	}
	links, ok := f.fsys.(fs.ReadLinkFS)
	if !ok {
		return nil
	}
	_, err := f.resolveLinks(links, name)
	return err
}

// leaves tells whether a name is there, but outside of the folder.
func (f *folder) leaves(name string) bool { return errors.Is(f.allowed(name), errOutside) }

// maxLinks is how many symlinks one path may go through.
const maxLinks = 32

// resolveLinks returns the name without symlinks, or errOutside. A component
// that does not exist ends the search: opening it will tell.
func (f *folder) resolveLinks(links fs.ReadLinkFS, name string) (string, error) {
	done, todo := ".", strings.Split(name, "/")
	for hops := 0; len(todo) > 0; {
		next := path.Join(done, todo[0])
		todo = todo[1:]
		if next == ".." || strings.HasPrefix(next, "../") {
			return "", errOutside
		}
		if f.plain[next] {
			done = next
			continue
		}
		info, err := links.Lstat(next)
		if err == nil && info.IsDir() {
			f.plain[next] = true
		}
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if hops++; hops > maxLinks {
			return "", errors.New("goes through too many symlinks")
		}
		target, err := links.ReadLink(next)
		if err != nil {
			return "", shortPathError(err)
		}
		if path.IsAbs(target) {
			return "", errOutside
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	return done, nil
}

// insideOfApp checks a directory written in a config, by its text alone.
func insideOfApp(dir string) error {
	clean := cleanDirectory(dir)
	if path.IsAbs(clean) || !fs.ValidPath(clean) {
		return errOutside
	}
	return nil
}

// shortPathError drops the operation and the path: the diagnostic has the path.
func shortPathError(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}
