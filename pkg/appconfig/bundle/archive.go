package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/digest"
	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/appconfig/folder"
)

// MaxSourceBytes bounds the files of one source archive together.
const MaxSourceBytes = 512 << 20

// Make packs the config files of an app folder, every file that they
// load and, of what was fetched from elsewhere, what they use, without source
// trees: what is uploaded, and read again with Open and appconfig.Load. The files
// below installs/ stay where they are: they are no part of the app, and may hold
// what only one install may know. The same folder gives the same bytes. It fails
// when the folder has errors or needs more than was fetched; check.Folder says which.
func Make(fsys fs.FS, fetched map[string]fetch.Result) (Bundle, error) {
	app, files, err := appconfig.Carried(fsys, fetched)
	if err != nil {
		return Bundle{}, err
	}
	if err := addFetched(files, app, fetched); err != nil {
		return Bundle{}, err
	}
	return packed(files)
}

// ArchiveSource packs a source that travels with a sync: its directory of the
// app folder, or its one file.
func ArchiveSource(fsys fs.FS, s appconfig.Source) (archive []byte, sum string, err error) {
	if s.Kind != appconfig.SourceText {
		return ArchiveDirectory(fsys, s.Directory)
	}
	var b archiveBuilder
	b.open()
	b.add(&tar.Header{Name: s.File, Mode: 0o644, Size: int64(len(s.Text)), Typeflag: tar.TypeReg}, []byte(s.Text))
	return b.finish()
}

// ArchiveDirectory packs a directory of the app folder. The same files give the
// same bytes: entries are sorted, times and owners are zero, and of the mode
// only "executable" is kept. State, plans, caches and version control are left
// out. A symlink is kept when it stays inside the directory, else refused.
func ArchiveDirectory(fsys fs.FS, dir string) (archive []byte, sum string, err error) {
	dir = folder.Clean(dir)
	if err := folder.New(fsys).Allowed(dir); err != nil {
		return nil, "", fmt.Errorf("source %q %w", dir, err)
	}
	root, err := fs.Sub(fsys, dir)
	if err != nil {
		return nil, "", err
	}
	if info, err := fs.Stat(root, "."); err != nil || !info.IsDir() {
		return nil, "", fmt.Errorf("source %q is not a directory of the app folder", dir)
	}
	var b archiveBuilder
	b.open()
	files, total := 0, int64(0)
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if leftOut(entry) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if files++; files > folder.MaxFiles {
			return fmt.Errorf("source %q has more than %d files", dir, folder.MaxFiles)
		}
		n, err := b.addEntry(root, name, entry, MaxSourceBytes-total)
		if total += n; err != nil {
			return fmt.Errorf("source %q: %s: %w", dir, name, err)
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return b.finish()
}

// leftOut tells which entries are no part of a source.
func leftOut(entry fs.DirEntry) bool {
	name := entry.Name()
	if entry.IsDir() {
		return name == ".git" || name == ".terraform"
	}
	return name == ".git" || name == ".terraform.tfstate.lock.info" || strings.HasSuffix(name, ".tfstate") ||
		strings.HasSuffix(name, ".tfstate.backup") || strings.HasSuffix(name, ".tfplan")
}

// archiveBuilder writes a tar.gz without anything that differs between runs.
type archiveBuilder struct {
	buf  bytes.Buffer
	gzip *gzip.Writer
	tar  *tar.Writer
	err  error
}

func (b *archiveBuilder) open() {
	b.gzip = gzip.NewWriter(&b.buf)
	b.tar = tar.NewWriter(b.gzip)
}

func (b *archiveBuilder) add(header *tar.Header, data []byte) {
	if b.err != nil {
		return
	}
	header.Format = tar.FormatPAX
	if b.err = b.tar.WriteHeader(header); b.err == nil {
		_, b.err = b.tar.Write(data)
	}
}

func (b *archiveBuilder) addEntry(root fs.FS, name string, entry fs.DirEntry, limit int64) (int64, error) {
	info, err := entry.Info()
	if err != nil {
		return 0, err
	}
	switch {
	case info.IsDir():
		b.add(&tar.Header{Name: name + "/", Mode: 0o755, Typeflag: tar.TypeDir}, nil)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := insideLink(root, name)
		if err != nil {
			return 0, err
		}
		b.add(&tar.Header{Name: name, Linkname: target, Mode: 0o777, Typeflag: tar.TypeSymlink}, nil)
	case info.Mode().IsRegular():
		data, err := readLimited(root, name, limit)
		if err != nil {
			return 0, err
		}
		mode := int64(0o644)
		if info.Mode()&0o111 != 0 {
			mode = 0o755
		}
		b.add(&tar.Header{Name: name, Mode: mode, Size: int64(len(data)), Typeflag: tar.TypeReg}, data)
		return int64(len(data)), b.err
	default:
		return 0, errors.New("is neither a file, a directory nor a symlink")
	}
	return 0, b.err
}

func readLimited(root fs.FS, name string, limit int64) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("the source is larger than %d MiB", MaxSourceBytes>>20)
	}
	return data, err
}

// insideLink returns the target of a symlink that stays inside. The target may
// go up only at its beginning, where the directories are real ones; ".." after
// a name could leave through another symlink.
func insideLink(root fs.FS, name string) (string, error) {
	target, err := fs.ReadLink(root, name)
	if err != nil {
		return "", err
	}
	down := false
	for part := range strings.SplitSeq(target, "/") {
		down = down || part != ".." && part != "." && part != ""
		if part == ".." && down {
			return "", errors.New("is a symlink that goes up after a name")
		}
	}
	if path.IsAbs(target) || !fs.ValidPath(path.Join(path.Dir(name), target)) {
		return "", errors.New("is a symlink that leaves the source")
	}
	return target, nil
}

func (b *archiveBuilder) finish() (archive []byte, sum string, err error) {
	if err := errors.Join(b.err, b.tar.Close(), b.gzip.Close()); err != nil {
		return nil, "", fmt.Errorf("pack: %w", err)
	}
	return b.buf.Bytes(), digest.SHA256(b.buf.Bytes()), nil
}
