package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// modeBits are the permissions that a file in an image may have. Executables
// with setuid or setgid would be a way to more rights than the pod was given.
const modeBits = 0o755

// A Tree is what one layer holds, by path without a leading slash. Everything
// belongs to root and can be read by everybody: an image runs as any user.
type Tree map[string]node

// A node is a directory, a link or a file.
type node struct {
	mode int64
	link string // of a symbolic link
	data []byte // of a file, unless it is from
	from string // a file on this machine
	dir  bool
}

// Dir adds a directory. A mode of 0 means 0755.
func (t Tree) Dir(at string, mode int64) {
	if mode == 0 {
		mode = modeBits
	}
	t[path.Clean(at)] = node{dir: true, mode: mode}
}

// File adds a file with these contents, which everybody can read.
func (t Tree) File(at string, data []byte) { t[path.Clean(at)] = node{data: data, mode: 0o644} }

// Link adds a symbolic link.
func (t Tree) Link(at, to string) { t[path.Clean(at)] = node{link: to, mode: 0o777} }

// Executable adds a file of this machine, which everybody can run.
func (t Tree) Executable(at, from string) { t[path.Clean(at)] = node{from: from, mode: modeBits} }

// Unpack adds what a tar stream holds and keep wants, by its path without a
// leading slash. It takes the setuid, setgid and write bits of others away.
func (t Tree) Unpack(r io.Reader, keep func(path string) bool) error {
	for in := tar.NewReader(r); ; {
		header, err := in.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		at := strings.TrimPrefix(path.Clean("/"+header.Name), "/")
		if at == "" || !keep(at) {
			continue
		}
		switch header.Typeflag {
		case tar.TypeDir:
			t.Dir(at, 0)
		case tar.TypeSymlink:
			t.Link(at, header.Linkname)
		case tar.TypeLink:
			target, ok := t[strings.TrimPrefix(path.Clean("/"+header.Linkname), "/")]
			if !ok {
				return fmt.Errorf("%s is a link to %s, which is not there", header.Name, header.Linkname)
			}
			t[at] = target
		case tar.TypeReg:
			data, err := io.ReadAll(in)
			if err != nil {
				return fmt.Errorf("%s: %w", header.Name, err)
			}
			t[at] = node{data: data, mode: header.Mode & modeBits}
		default:
			return fmt.Errorf("%s is neither file, directory nor link", header.Name)
		}
	}
}

// Paths returns what is in the tree, sorted.
func (t Tree) Paths() []string { return slices.Sorted(maps.Keys(t)) }

// write packs the tree into a tar stream that depends on nothing but the tree
// and the time. Directories that nobody added come before what is in them.
func (t Tree) write(to io.Writer, when time.Time) error {
	all := maps.Clone(t)
	for at := range t {
		for dir := path.Dir(at); dir != "."; dir = path.Dir(dir) {
			if _, ok := all[dir]; !ok {
				all[dir] = node{dir: true, mode: modeBits}
			}
		}
	}
	w := tar.NewWriter(to)
	for _, at := range slices.Sorted(maps.Keys(all)) {
		if err := all[at].write(w, at, when); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	return w.Close()
}

func (n node) write(w *tar.Writer, at string, when time.Time) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: at, Mode: n.mode, ModTime: when.UTC(), Size: int64(len(n.data))}
	data := io.Reader(bytes.NewReader(n.data))
	switch {
	case n.dir:
		header.Typeflag, header.Name = tar.TypeDir, at+"/"
	case n.link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, n.link
	case n.from != "":
		file, err := os.Open(n.from)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		header.Size, data = info.Size(), file
	}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	if header.Typeflag != tar.TypeReg {
		return nil
	}
	_, err := io.Copy(w, data)
	return err
}
