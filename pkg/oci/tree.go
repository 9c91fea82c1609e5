package oci

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

// Modes are normalised to these, so that a umask or a copy over another file
// system does not change a digest.
const (
	modeDir        = 0o755
	modeFile       = 0o644
	modeExecutable = 0o755
)

// PackRoot writes an open directory as a tar.gz whose bytes depend only on
// paths, contents, symlink targets and executable bits: entries are sorted,
// times are zero, owners are root, modes are 0755 or 0644. (The compressor is
// Go's; another Go release may compress to other bytes.) Nothing outside of the
// directory is read, whatever others do to it meanwhile.
//
// A symlink that could lead out of it, a device, a socket or a pipe is refused
// by name. See [PackInput] for exclude, which may be nil.
func PackRoot(ctx context.Context, w io.Writer, root *os.Root, exclude func(path string) bool) error {
	zw := gzip.NewWriter(w)
	tw := tar.NewWriter(zw)
	folded := map[string]string{} // names without case
	err := fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if name == "." {
			return nil
		}
		if path.Base(name) == ".git" || (exclude != nil && exclude(name)) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if other, taken := folded[fold(name)]; taken {
			return fmt.Errorf("%s differs from %s in case only: nobody could unpack both everywhere", name, other)
		}
		folded[fold(name)] = name
		return packEntry(tw, root, name, entry)
	})
	if err != nil {
		return fmt.Errorf("pack %s: %w", root.Name(), err)
	}
	if err := errors.Join(tw.Close(), zw.Close()); err != nil {
		return fmt.Errorf("pack %s: %w", root.Name(), err)
	}
	return nil
}

func packEntry(tw *tar.Writer, root *os.Root, name string, entry fs.DirEntry) error {
	if err := checkName(name); err != nil {
		return err
	}
	header := &tar.Header{Name: name, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
	switch entry.Type() {
	case fs.ModeDir:
		header.Typeflag, header.Name, header.Mode = tar.TypeDir, name+"/", modeDir
		return tw.WriteHeader(header)
	case fs.ModeSymlink:
		target, err := root.Readlink(name)
		if err != nil {
			return err
		}
		if err := checkLink(name, target); err != nil {
			return err
		}
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, target, 0o777
		return tw.WriteHeader(header)
	case 0:
		return packFile(tw, root, header)
	default:
		return fmt.Errorf("%s: %s cannot be packed: only files, directories and symlinks can", name, entry.Type())
	}
}

func packFile(tw *tar.Writer, root *os.Root, header *tar.Header) error {
	// It may have become a pipe since it was listed: that must not be waited for.
	f, err := root.OpenFile(header.Name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s changed while it was packed: it is no file any more", header.Name)
	}
	header.Typeflag, header.Mode, header.Size = tar.TypeReg, modeFile, info.Size()
	if info.Mode()&0o100 != 0 {
		header.Mode = modeExecutable
	}
	if err := tw.WriteHeader(header); err != nil {
		return err
	}
	if n, err := io.Copy(tw, f); err != nil || n != info.Size() {
		return fmt.Errorf("%s changed while it was packed: %w", header.Name, errors.Join(err, io.ErrUnexpectedEOF))
	}
	return nil
}

const (
	maxNameBytes = 4096 // PATH_MAX of Linux
	maxNameDepth = 128
)

// checkName accepts a clean, relative, slash-separated path inside the tree.
func checkName(name string) error {
	switch {
	case len(name) > maxNameBytes || strings.Count(name, "/") >= maxNameDepth:
		return fmt.Errorf("%.64q…: path is too long or too deep", name)
	case !utf8.ValidString(name) || strings.ContainsAny(name, "\x00\\"):
		return fmt.Errorf("%q: path has characters that are not allowed", name)
	case name == "." || !fs.ValidPath(name):
		return fmt.Errorf("%q: path is not inside the tree", name)
	}
	return nil
}

// checkLink accepts a symlink at name that cannot lead out of the tree,
// whatever its target turns out to be. ".." is allowed only in front, where it
// climbs real directories (entries never lie below a symlink), and only as
// high as the root; further down it could climb from wherever another symlink
// points. Targets so limited stay inside, also in chains.
func checkLink(name, target string) error {
	if target == "" || path.IsAbs(target) || len(target) > maxNameBytes || strings.ContainsAny(target, "\x00\\") {
		return fmt.Errorf("%s: symlink to %q is not allowed: it must be relative and inside the tree", name, target)
	}
	climb, descended := 0, false
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			climb++
			if descended || climb > strings.Count(name, "/") {
				return fmt.Errorf("%s: symlink to %q could lead out of the tree", name, target)
			}
		default:
			descended = true
		}
	}
	return nil
}
