// Package folder reads the files of an app folder, within limits and without
// ever leaving it. What the files mean is not its business.
package folder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// Limits on what is read from an app folder. They are far above what real apps
// have and keep a wrong directory from filling the memory.
const (
	MaxFileBytes = 4 << 20  // one file
	MaxFiles     = 10_000   // all files that are read
	MaxBytes     = 64 << 20 // all of them together
)

// Why a file is not read. ErrUsed is for those who count what keys name.
var (
	ErrOutside  = errors.New("leaves the app folder")
	ErrTooMany  = fmt.Errorf("the app folder has more than %d files to read", MaxFiles)
	ErrTooLarge = fmt.Errorf("the files of the app folder are together larger than %d MiB", MaxBytes>>20)
	ErrUsed     = fmt.Errorf("the files that keys name are together larger than %d MiB, each counted as often as it is named", MaxBytes>>20)
)

// Reader reads an app folder within the limits and remembers what it read. It
// never follows a symlink out of the folder.
type Reader struct {
	FS    fs.FS
	Files map[string][]byte // what was read so far, by name
	total int64
	plain map[string]bool // directories that are no symlinks
}

// New reads from a file system.
func New(fsys fs.FS) *Reader {
	return &Reader{FS: fsys, Files: map[string][]byte{}, plain: map[string]bool{}}
}

// Read returns a file's contents; reading it again costs nothing.
func (f *Reader) Read(name string) ([]byte, error) {
	if data, ok := f.Files[name]; ok {
		return data, nil
	}
	if err := f.Allowed(name); err != nil {
		return nil, err
	}
	file, err := f.FS.Open(name)
	if err != nil {
		return nil, ShortError(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, ShortError(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(file, MaxFileBytes+1))
	if err != nil {
		return nil, ShortError(err)
	}
	switch {
	case len(data) > MaxFileBytes:
		return nil, fmt.Errorf("is larger than %d MiB", MaxFileBytes>>20)
	case len(f.Files) >= MaxFiles:
		return nil, ErrTooMany
	case f.total+int64(len(data)) > MaxBytes:
		return nil, ErrTooLarge
	}
	f.Files[name] = data
	f.total += int64(len(data))
	return data, nil
}

// Exists tells whether there is a file or directory of this name.
func (f *Reader) Exists(name string) bool {
	_, err := fs.Stat(f.FS, name)
	return err == nil
}

// IsDir tells whether a name is a directory inside the folder.
func (f *Reader) IsDir(name string) bool {
	if f.Allowed(name) != nil {
		return false
	}
	info, err := fs.Stat(f.FS, name)
	return err == nil && info.IsDir()
}

// TOMLFiles lists the TOML files below a directory, sorted. It visits at most
// MaxFolderFiles entries and does not follow symlinks to directories.
func (f *Reader) TOMLFiles(dir string) ([]string, error) {
	var names []string
	visited := 0
	err := fs.WalkDir(f.FS, dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && name == dir && errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return ShortError(err)
		}
		if visited++; visited > MaxFiles {
			return ErrTooMany
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

// Allowed refuses names that leave the folder, also through symlinks. A file
// system that cannot read links (an opened bundle) has none.
func (f *Reader) Allowed(name string) error {
	if !fs.ValidPath(name) {
		return ErrOutside
	}
	if IsReserved(name) {
		return errReserved
	}
	links, ok := f.FS.(fs.ReadLinkFS)
	if !ok {
		return nil
	}
	_, err := f.resolveLinks(links, name)
	return err
}

// Leaves tells whether a name is there, but outside of the folder.
func (f *Reader) Leaves(name string) bool { return errors.Is(f.Allowed(name), ErrOutside) }

// maxLinks is how many symlinks one path may go through.
const maxLinks = 32

// resolveLinks returns the name without symlinks, or errOutside. A component
// that does not exist ends the search: opening it will tell.
func (f *Reader) resolveLinks(links fs.ReadLinkFS, name string) (string, error) {
	done, todo := ".", strings.Split(name, "/")
	for hops := 0; len(todo) > 0; {
		next := path.Join(done, todo[0])
		todo = todo[1:]
		if next == ".." || strings.HasPrefix(next, "../") {
			return "", ErrOutside
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
			return "", ShortError(err)
		}
		if path.IsAbs(target) {
			return "", ErrOutside
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	return done, nil
}

// FetchedDir is where a bundle keeps what was fetched, so it is no part of an
// app folder.
const FetchedDir = ".fetched"

var errReserved = errors.New("is in " + FetchedDir + "/, where a bundle keeps what was fetched")

// IsReserved tells names that only a bundle may use.
func IsReserved(name string) bool {
	return name == FetchedDir || strings.HasPrefix(name, FetchedDir+"/")
}

// Clean makes "", ".", "./x/" and "x" comparable.
func Clean(dir string) string { return path.Clean(strings.ReplaceAll(dir, "\\", "/")) }

// Inside returns ErrOutside for a directory written in a config that leaves the
// app folder, by its text alone.
func Inside(dir string) error {
	clean := Clean(dir)
	if path.IsAbs(clean) || !fs.ValidPath(clean) {
		return ErrOutside
	}
	return nil
}

// ShortError drops the operation and the path: the diagnostic has the path.
func ShortError(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}

// Code is the code of a diagnostic about an error of this package.
func Code(err error) place.Code {
	switch {
	case errors.Is(err, ErrOutside):
		return place.CodeOutsideOfApp
	case errors.Is(err, ErrTooMany), errors.Is(err, ErrTooLarge), errors.Is(err, ErrUsed):
		return place.CodeLimit
	}
	return place.CodeFile
}
