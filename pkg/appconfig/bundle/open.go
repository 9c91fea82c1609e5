// Package bundle packs an app folder for its way to the control plane and opens
// it there: the config in packs, what was fetched for it, and the archives of
// its sources. Opened bytes may come from anybody.
package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/appconfig/folder"
)

// Open opens the packs of a bundle together, in memory. The bytes may come
// from anybody: names must be plain relative paths, only regular files count,
// and the limits of an app folder hold while unpacking, so small packs cannot
// grow without bound. Load finds what was fetched from elsewhere in it; what
// does not have the digest that the bundle says is refused.
func Open(packs ...[]byte) (fs.FS, error) {
	// Headers and padding count too: 4 KiB per file is more than enough.
	u := unpacking{files: map[string]*memFile{}, left: folder.MaxBytes + folder.MaxFiles*4096}
	for _, pack := range packs {
		if err := u.pack(pack); err != nil {
			return nil, err
		}
	}
	fetched, err := takeFetched(u.files)
	if err != nil {
		return nil, err
	}
	return newMemFS(u.files, fetched), nil
}

// unpacking collects the files of a bundle.
type unpacking struct {
	files map[string]*memFile
	total int64 // bytes of files, as their headers say
	left  int64 // bytes that may still come out of packs
}

func (u *unpacking) pack(archive []byte) error {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return errors.New("the bundle is not a gzip file")
	}
	limited := &io.LimitedReader{R: unzipped, N: u.left}
	for r := tar.NewReader(limited); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			u.left = limited.N
			return nil
		}
		if err != nil {
			return errors.New("the bundle is not a whole tar file")
		}
		if err := u.file(header, r); err != nil {
			return err
		}
	}
}

func (u *unpacking) file(header *tar.Header, r io.Reader) error {
	u.total += header.Size
	switch {
	case header.Typeflag != tar.TypeReg:
		return fmt.Errorf("the bundle has %q, which is not a regular file", header.Name)
	case !fs.ValidPath(header.Name) || header.Name == "." || strings.ContainsAny(header.Name, "\\\x00"):
		return fmt.Errorf("the bundle has a file with the unsafe name %q", header.Name)
	case u.files[header.Name] != nil:
		return fmt.Errorf("the bundle has %q twice", header.Name)
	case header.Size > folder.MaxFileBytes:
		return fmt.Errorf("%s is larger than %d MiB", header.Name, folder.MaxFileBytes>>20)
	case len(u.files) >= folder.MaxFiles:
		return folder.ErrTooMany
	case u.total > folder.MaxBytes:
		return folder.ErrTooLarge
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return errors.New("the bundle is not a whole tar file")
	}
	u.files[header.Name] = &memFile{name: path.Base(header.Name), data: data}
	return nil
}

// memFS is a read-only tree of regular files, and what was fetched from
// elsewhere for them.
type memFS struct {
	files   map[string]*memFile
	dirs    map[string][]fs.DirEntry // sorted entries by directory
	fetched map[string]fetch.Result  // by address
}

// Fetched tells what was fetched from elsewhere, by address.
func (m memFS) Fetched() map[string]fetch.Result { return m.fetched }

func newMemFS(files map[string]*memFile, fetched map[string]fetch.Result) memFS {
	m := memFS{files: files, dirs: map[string][]fs.DirEntry{".": nil}, fetched: fetched}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		m.enter(name, files[name])
	}
	for _, entries := range m.dirs {
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	}
	return m
}

// enter puts a file or directory into its directory, and that into the one
// above when it is new.
func (m memFS) enter(name string, f *memFile) {
	dir := path.Dir(name)
	if _, known := m.dirs[dir]; !known {
		m.dirs[dir] = nil
		m.enter(dir, &memFile{name: path.Base(dir), dir: true})
	}
	m.dirs[dir] = append(m.dirs[dir], fs.FileInfoToDirEntry(f))
}

// Open implements fs.FS.
func (m memFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if f, ok := m.files[name]; ok {
		return &memReader{memFile: f, Reader: bytes.NewReader(f.data)}, nil
	}
	entries, ok := m.dirs[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &memDir{memFile: memFile{name: path.Base(name), dir: true}, entries: entries}, nil
}

// memFile is a file of a memFS, or a directory; it is its own fs.FileInfo.
type memFile struct {
	name string
	data []byte
	dir  bool
}

func (f *memFile) Name() string       { return f.name }
func (f *memFile) Size() int64        { return int64(len(f.data)) }
func (f *memFile) ModTime() time.Time { return time.Time{} }
func (f *memFile) IsDir() bool        { return f.dir }
func (f *memFile) Sys() any           { return nil }
func (f *memFile) Mode() fs.FileMode {
	if f.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// memReader is an open file.
type memReader struct {
	*memFile
	*bytes.Reader
}

func (r *memReader) Size() int64                { return r.memFile.Size() }
func (r *memReader) Stat() (fs.FileInfo, error) { return r.memFile, nil }
func (r *memReader) Close() error               { return nil }

// memDir is an open directory.
type memDir struct {
	memFile
	entries []fs.DirEntry
}

func (d *memDir) Stat() (fs.FileInfo, error) { return &d.memFile, nil }
func (d *memDir) Close() error               { return nil }
func (d *memDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: errors.New("is a directory")}
}

// ReadDir implements fs.ReadDirFile.
func (d *memDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		all := d.entries
		d.entries = nil
		return all, nil
	}
	if len(d.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.entries))
	next := d.entries[:n]
	d.entries = d.entries[n:]
	return next, nil
}
