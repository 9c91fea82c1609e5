package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-dev/berth/runner/engine/job"
)

const (
	maxFiles = 20_000
	maxBytes = 512 << 20 // of all files together
)

// copier copies the files that belong to a module or a chart.
type copier struct {
	root     string // the whole source, which from is in
	from, to string

	files   int
	bytes   int64
	leftOut []string // files that look like secrets or state; caches are not worth a word
}

func (c *copier) copy(ctx context.Context) error {
	return filepath.WalkDir(c.from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		name, err := filepath.Rel(c.from, path)
		if err != nil {
			return err
		}
		to := filepath.Join(c.to, name)
		switch {
		case name == ".":
			return os.MkdirAll(to, 0o700)
		case e.IsDir() && isCache(e.Name()):
			return fs.SkipDir
		case e.Name() == ".git": // the file of a worktree or submodule
			return nil
		case !e.IsDir() && (isPrivate(e.Name()) || isPrivateKey(path)):
			c.leftOut = append(c.leftOut, name)
			return nil
		case e.IsDir():
			return os.Mkdir(to, 0o700)
		case e.Type()&fs.ModeSymlink != 0:
			return c.link(path, name, to)
		case e.Type().IsRegular():
			return c.file(path, name, to)
		}
		return fmt.Errorf("%s is neither a file, a directory nor a symlink", name)
	})
}

// log says what is not in the copy.
func (c *copier) log(j *job.Job) {
	for _, name := range c.leftOut {
		j.Logf("left out: %s", name)
	}
}

func isCache(dir string) bool { return dir == ".git" || dir == ".terraform" }

// isPrivate tells files that belong to somebody's own run of the module: state,
// plans, credentials, and settings for the local machine.
func isPrivate(name string) bool {
	switch name {
	case ".terraformrc", "terraform.rc", ".env", ".netrc", ".npmrc", "credentials.tfrc.json", ".terraform.tfstate.lock.info":
		return true
	}
	for _, suffix := range []string{".tfstate", ".tfstate.backup", ".tfplan", ".p12", ".pfx"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return slices.Contains([]string{"id_rsa", "id_ecdsa", "id_ed25519"}, name) || strings.HasPrefix(name, ".env.")
}

// isPrivateKey looks into files that may hold a key or as well a certificate,
// which modules need.
func isPrivateKey(path string) bool {
	if ext := filepath.Ext(path); ext != ".pem" && ext != ".key" {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	const enough = 64 << 10
	head, err := io.ReadAll(io.LimitReader(f, enough))
	return err == nil && bytes.Contains(head, []byte("PRIVATE KEY-----"))
}

// Fits checks what a tool put into a folder that becomes an artifact: it is subject to
// the same limits as a source, and no link of it leads out of the folder.
// It counts them.
func Fits(dir string) (files int, bytes int64, err error) {
	c := &copier{from: dir}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		switch {
		case err != nil:
			return err
		case e.Type()&fs.ModeSymlink != 0:
			if err := c.leads(path, name); err != nil {
				return err
			}
			return c.count(name, 0)
		case e.Type().IsRegular():
			return c.count(name, info.Size())
		}
		return fmt.Errorf("%s is neither a file, a directory nor a symlink", name)
	})
	return c.files, c.bytes, err
}

func (c *copier) count(name string, size int64) error {
	c.files++
	c.bytes += size
	if c.files > maxFiles {
		return fmt.Errorf("the directory has more than %d files", maxFiles)
	}
	if c.bytes > maxBytes {
		return fmt.Errorf("the files are larger than %d MiB together, at %s", maxBytes>>20, name)
	}
	return nil
}

func (c *copier) link(path, name, to string) error {
	target, err := os.Readlink(path)
	if err != nil {
		return err
	}
	if err := c.leads(path, name); err != nil {
		return err
	}
	if err := c.count(name, 0); err != nil {
		return err
	}
	return os.Symlink(target, to)
}

// leads says what is wrong with where a symlink leads.
func (c *copier) leads(path, name string) error {
	target, err := os.Readlink(path)
	if err != nil {
		return err
	}
	if filepath.IsAbs(target) {
		return fmt.Errorf("%s is a symlink to an absolute path", name)
	}
	if err := inside(c.from, path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is a symlink to nothing", name)
	} else if err != nil {
		return fmt.Errorf("%s is a symlink: %w", name, err)
	}
	return nil
}

// inside tells whether what a path leads to, through all links, is below root.
func inside(root, path string) error {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return err
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if rel, err := filepath.Rel(root, target); err != nil || !filepath.IsLocal(rel) {
		return errors.New("it leads out of the source")
	}
	return nil
}

func (c *copier) file(path, name, to string) error {
	src, err := os.Open(path)
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return err
	}
	if err := c.count(name, info.Size()); err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	if info.Mode()&0o111 != 0 {
		mode = 0o700
	}
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.CopyN(dst, src, info.Size())
	return errors.Join(err, dst.Close())
}
