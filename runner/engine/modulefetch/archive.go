package modulefetch

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const (
	maxEntries  = 20_000
	maxUnpacked = 512 << 20 // bytes of all files together
)

// download fetches a packed directory, unpacks it into dir and returns its digest.
func (f *fetcher) download(ctx context.Context, a Address, dir string) (string, error) {
	u, err := url.Parse(a.Archive)
	if err != nil {
		return "", errors.New("it is no address")
	}
	res, err := f.get(ctx, u)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	packed, err := os.Create(dir + ".packed")
	if err != nil {
		return "", err
	}
	defer func() { _ = packed.Close(); _ = os.Remove(packed.Name()) }()
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(packed, sum), res.Body)
	if err != nil {
		return "", fmt.Errorf("the download from %s broke off: %w", u.Host, err)
	}
	if _, err := packed.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	to := &unpacking{root: root}
	if a.Form == "zip" {
		err = to.zip(packed, size)
	} else {
		err = to.tar(packed)
	}
	if err != nil {
		return "", fmt.Errorf("the archive from %s: %w", u.Host, err)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// unpacking writes below a directory and nowhere else, through links too.
type unpacking struct {
	root    *os.Root
	entries int
	bytes   int64
}

func (u *unpacking) tar(in io.Reader) error {
	zipped, err := gzip.NewReader(in)
	if err != nil {
		return errors.New("it is no tar.gz")
	}
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errors.New("it is damaged")
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = u.directory(h.Name)
		case tar.TypeReg:
			err = u.file(h.Name, h.FileInfo().Mode(), r)
		case tar.TypeXGlobalHeader:
			err = u.count(".")
		default:
			err = fmt.Errorf("%q is neither a file nor a directory", h.Name)
		}
		if err != nil {
			return err
		}
	}
}

func (u *unpacking) zip(in io.ReaderAt, size int64) error {
	r, err := zip.NewReader(in, size)
	if err != nil {
		return errors.New("it is no zip")
	}
	for _, entry := range r.File {
		mode := entry.Mode()
		switch {
		case mode.IsDir():
			err = u.directory(entry.Name)
		case mode.IsRegular():
			var from io.ReadCloser
			if from, err = entry.Open(); err == nil {
				err = u.file(entry.Name, mode, from)
				_ = from.Close()
			}
		default:
			err = fmt.Errorf("%q is neither a file nor a directory", entry.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacking) directory(name string) error {
	name = path.Clean(name)
	if err := u.count(name); err != nil || name == "." {
		return err
	}
	return u.root.MkdirAll(filepath.FromSlash(name), 0o700)
}

func (u *unpacking) count(name string) error {
	if u.entries++; u.entries > maxEntries {
		return fmt.Errorf("it has more than %d entries", maxEntries)
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) || strings.Contains(name, `\`) {
		return fmt.Errorf("%q leads out of it", name)
	}
	return nil
}

func (u *unpacking) file(name string, mode fs.FileMode, from io.Reader) error {
	if err := u.count(name); err != nil {
		return err
	}
	name = filepath.FromSlash(path.Clean(name))
	if err := u.root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	to, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600|mode&0o100)
	if err != nil {
		return fmt.Errorf("%q cannot be unpacked: %w", name, err)
	}
	n, err := io.Copy(to, io.LimitReader(from, maxUnpacked-u.bytes+1))
	u.bytes += n
	if err = errors.Join(err, to.Close()); err == nil && u.bytes > maxUnpacked {
		err = fmt.Errorf("its files are larger than %d MiB together", maxUnpacked>>20)
	}
	return err
}
