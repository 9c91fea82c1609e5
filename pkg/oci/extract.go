package oci

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

// extractor writes entries of one or more archives below a root. It refuses
// entries by its own rules; os.Root, which does not resolve out of its
// directory, is the second wall.
type extractor struct {
	root             *os.Root
	limits           Limits
	entries          map[string]entryKind
	folded           map[string]string // entries by their names without case
	links            []link
	bytes            int64 // of files so far
	packed, unpacked int64 // archive bytes so far, before and after gzip
}

type entryKind int

const (
	entryImplied entryKind = iota + 1 // directory that only its children name
	entryDir
	entryFile
	entryLink
)

type link struct{ name, target string }

func newExtractor(root *os.Root, limits Limits) *extractor {
	return &extractor{root: root, limits: limits.withDefaults(), entries: map[string]entryKind{}, folded: map[string]string{}}
}

// unsafef is an error of the archive's own making.
func unsafef(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrUnsafeArchive, fmt.Errorf(format, args...))
}

// extract writes all but the symlinks, which wait for finish.
func (x *extractor) extract(r io.Reader) error {
	zr, err := gzip.NewReader(&countReader{r, &x.packed})
	if err != nil {
		return fmt.Errorf("not a tar.gz archive: %w", err)
	}
	tr := tar.NewReader(&budgetReader{zr, x})
	for {
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		if err := x.entry(header, tr); err != nil {
			return err
		}
	}
}

func (x *extractor) entry(header *tar.Header, content io.Reader) error {
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil // git archive puts the commit there
	}
	name := strings.TrimSuffix(strings.TrimPrefix(header.Name, "./"), "/")
	if header.Typeflag == tar.TypeDir && (name == "" || name == ".") {
		return nil
	}
	if err := checkName(name); err != nil {
		return unsafef("%w", err)
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return x.claim(name, entryDir)
	case tar.TypeReg:
		return x.file(name, header, content)
	case tar.TypeSymlink:
		if err := checkLink(name, header.Linkname); err != nil {
			return unsafef("%w", err)
		}
		x.links = append(x.links, link{name, header.Linkname})
		return x.claim(name, entryLink)
	default:
		return unsafef("%s: entries of type %q are not allowed", name, header.Typeflag)
	}
}

// claim registers a path, once, below directories only, and makes directories.
func (x *extractor) claim(name string, kind entryKind) error {
	if parent := path.Dir(name); parent != "." {
		switch x.entries[parent] {
		case entryDir, entryImplied:
		case entryFile, entryLink:
			return unsafef("%s: %s is not a directory", name, parent)
		default:
			if err := x.claim(parent, entryImplied); err != nil {
				return err
			}
		}
	}
	switch was := x.entries[name]; {
	case was == 0:
	case kind == entryDir && (was == entryImplied || was == entryDir):
		return nil // layers may name the same directory
	default:
		return unsafef("%s: is there twice", name)
	}
	// Where case does not count, the later of two such files would replace the other.
	if other, taken := x.folded[fold(name)]; taken && other != name {
		return unsafef("%s: differs from %s in case only", name, other)
	}
	if len(x.entries) >= x.limits.MaxEntries {
		return unsafef("more than %d entries", x.limits.MaxEntries)
	}
	x.entries[name], x.folded[fold(name)] = kind, name
	if kind == entryDir || kind == entryImplied {
		return x.root.Mkdir(name, modeDir)
	}
	return nil
}

// fold is a name by which file systems that ignore case know a file: simple case
// folding, also of letters such as the long s and the Kelvin sign.
func fold(name string) string { return strings.ToLower(strings.ToUpper(name)) }

func (x *extractor) file(name string, header *tar.Header, content io.Reader) error {
	if header.Size > x.limits.MaxFileBytes {
		return unsafef("%s: %d bytes, at most %d allowed in a file", name, header.Size, x.limits.MaxFileBytes)
	}
	if header.Size > x.limits.MaxBytes-x.bytes {
		return unsafef("%s: the tree would have more than %d bytes", name, x.limits.MaxBytes)
	}
	if err := x.claim(name, entryFile); err != nil {
		return err
	}
	mode := os.FileMode(modeFile)
	if header.Mode&0o100 != 0 {
		mode = modeExecutable
	}
	f, err := x.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, content)
	x.bytes += n
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// finish makes the symlinks, when nothing can be written through them any more.
func (x *extractor) finish() error {
	for _, l := range x.links {
		if err := x.root.Symlink(l.target, l.name); err != nil {
			return err
		}
	}
	return nil
}

// countReader counts what the archive has given.
type countReader struct {
	r io.Reader
	n *int64
}

func (c *countReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	*c.n += int64(n)
	return n, err
}

// budgetReader stops the decompression itself, so that headers and padding,
// which are no file's bytes, cannot be the bomb.
type budgetReader struct {
	r io.Reader
	x *extractor
}

// tarOverheadBytes is what an entry may cost in addition to its content:
// headers, extended headers and padding.
const tarOverheadBytes = 16 << 10

func (b *budgetReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.x.unpacked += int64(n)
	limits := b.x.limits
	if most := limits.MaxBytes + int64(len(b.x.entries)+1)*tarOverheadBytes; b.x.unpacked > most {
		return 0, unsafef("unpacks to more than %d bytes", limits.MaxBytes)
	}
	if b.x.unpacked > ratioFreeBytes && b.x.unpacked/limits.MaxRatio > b.x.packed {
		return 0, unsafef("unpacks to more than %d times its size", limits.MaxRatio)
	}
	return n, err
}
