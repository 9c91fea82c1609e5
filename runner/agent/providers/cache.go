// Package providers is the runner's cache of Terraform's providers. It fills itself: what
// one job has downloaded serves all later ones.
//
// Engines run the vendor's code, so nothing that they say about a package is believed. A
// package is kept under the hash of its contents, which the agent computes, and only when
// the lock file of the job's artifact names that hash; it is given only to jobs whose own
// lock file names it. Engines see it read-only. Each use looks whether it still has that
// hash; one that has not is thrown away.
//
//	engine: init ──▶ work/plugins/HOST/NAMESPACE/TYPE/VERSION/TARGET
//	agent:  Take ──▶ DIR/packages/HASH                     (copied, hashed, one rename)
//	agent:  Give ──▶ DIR/views/…/HOST/NAMESPACE/TYPE/VERSION/TARGET ─▶ DIR/packages/HASH
//
// A module without a lock file, or whose lock file has only the hashes of archives ("zh:"),
// is downloaded each time that it is initialised.
package providers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// DefaultBytes is the most that the cache takes.
	DefaultBytes = 2 << 30
	// MaxAge is how long a package stays that nobody uses.
	MaxAge = 30 * 24 * time.Hour
	// inUse is how long a package stays for sure after it was given: longer than a job.
	inUse = 24 * time.Hour

	maxFiles = 2000 // of a package: they have about four
)

// Cache is a directory that only the agent writes to. It is safe for concurrent use, and
// for an agent that is killed at any time.
type Cache struct {
	Dir string
	// MaxBytes is the most that it takes, but for packages in use.
	MaxBytes int64
	Now      func() time.Time

	mu   sync.Mutex
	seen map[string]string // hash → stamp of the files when they had it
}

// Given is what a job may use.
type Given struct {
	View string // for TF_PLUGIN_CACHE_DIR
	// Damaged are packages that no longer had their hash; they are gone.
	Damaged []string
}

// Give makes a view of the cache that has the packages that a lock file names, as far as
// they are there.
func (c *Cache) Give(locked []Locked) (Given, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var g Given
	links := map[string]string{}
	name := sha256.New()
	for _, l := range locked {
		for _, hash := range l.Hashes {
			pkg := c.pkg(hash)
			if _, err := os.Lstat(pkg); err != nil {
				continue
			}
			if !c.intact(hash) {
				g.Damaged = append(g.Damaged, l.place())
				if err := c.drop(pkg); err != nil {
					return g, err
				}
				continue
			}
			if err := os.Chtimes(pkg, time.Time{}, c.Now()); err != nil { // it was used now
				return g, err
			}
			links[l.place()] = pkg
			fmt.Fprintf(name, "%s %s\n", l.place(), hash)
			break
		}
	}
	g.View = filepath.Join(c.Dir, "views", hex.EncodeToString(name.Sum(nil)[:16]))
	if err := os.MkdirAll(g.View, 0o755); err != nil {
		return g, err
	}
	for place, pkg := range links {
		link := filepath.Join(g.View, filepath.FromSlash(place))
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			return g, err
		}
		if err := os.Symlink(pkg, link); err != nil && !errors.Is(err, fs.ErrExist) {
			return g, err
		}
	}
	return g, nil
}

// Take keeps the packages that an engine has downloaded to a directory, as far as the
// lock file of its artifact names them with the hash that they have. The engine is over.
func (c *Cache) Take(ctx context.Context, plugins *os.Root, locked []Locked) (kept []string, _ error) {
	var failed []error
	for _, l := range locked {
		info, err := plugins.Lstat(filepath.FromSlash(l.place()))
		if err != nil || !info.IsDir() { // a link leads to what is kept already
			continue
		}
		if slices.ContainsFunc(l.Hashes, func(h string) bool { _, err := os.Lstat(c.pkg(h)); return err == nil }) {
			continue
		}
		switch err := c.take(ctx, plugins, l); {
		case err != nil:
			failed = append(failed, fmt.Errorf("provider %s: %w", l.place(), err))
		default:
			kept = append(kept, l.place())
		}
	}
	if len(kept) > 0 {
		failed = append(failed, c.Prune())
	}
	return kept, errors.Join(failed...)
}

// ErrOther says that a package is not what the lock file names.
var ErrOther = errors.New("its contents have another hash than the lock file names")

func (c *Cache) take(ctx context.Context, plugins *os.Root, l Locked) error {
	from, err := plugins.OpenRoot(filepath.FromSlash(l.place()))
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	if err := os.MkdirAll(filepath.Join(c.Dir, "packages"), 0o755); err != nil {
		return err
	}
	stage, err := os.MkdirTemp(c.Dir, ".stage-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(stage) }()
	if err := os.Chmod(stage, 0o755); err != nil { // for engines of other users
		return err
	}
	if err := copyPackage(ctx, from, stage, c.MaxBytes); err != nil {
		return err
	}
	hash, err := hashOf(stage)
	if err != nil {
		return err
	}
	if !slices.Contains(l.Hashes, hash) {
		return ErrOther
	}
	if err := os.Chtimes(stage, time.Time{}, c.Now()); err != nil {
		return err
	}
	err = os.Rename(stage, c.pkg(hash))
	if _, there := os.Lstat(c.pkg(hash)); there == nil {
		return nil // it is there, by this one or another
	}
	return err
}

// Prune removes what killed agents left half done, what nobody has used for MaxAge, and
// beyond MaxBytes what was used the longest ago. What may be in use stays.
func (c *Cache) Prune() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	type kept struct {
		path  string
		bytes int64
		used  time.Time
	}
	var all []kept
	var total int64
	var failed []error
	left, _ := filepath.Glob(filepath.Join(c.Dir, ".*"))
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && c.Now().Sub(info.ModTime()) > inUse {
			failed = append(failed, os.RemoveAll(path))
		}
	}
	dirs, err := os.ReadDir(filepath.Join(c.Dir, "packages"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, d := range dirs {
		k := kept{path: filepath.Join(c.Dir, "packages", d.Name())}
		info, err := d.Info()
		if err != nil {
			continue
		}
		k.used = info.ModTime()
		k.bytes, err = size(k.path)
		failed = append(failed, err)
		all, total = append(all, k), total+k.bytes
	}
	slices.SortFunc(all, func(a, b kept) int { return cmp.Or(a.used.Compare(b.used), strings.Compare(a.path, b.path)) })
	for _, k := range all {
		unused := c.Now().Sub(k.used)
		if unused > MaxAge || total > c.MaxBytes && unused > inUse {
			failed = append(failed, c.drop(k.path))
			total -= k.bytes
		}
	}
	return errors.Join(failed...)
}

// drop removes a package, which is whole or absent at each moment.
func (c *Cache) drop(pkg string) error {
	gone, err := os.MkdirTemp(c.Dir, ".gone-*")
	if err != nil {
		return err
	}
	delete(c.seen, filepath.Base(pkg))
	return errors.Join(os.Rename(pkg, filepath.Join(gone, "x")), os.RemoveAll(gone))
}

// intact tells whether a package still has its hash. Files that have not changed since
// it was last computed are not read again.
func (c *Cache) intact(hash string) bool {
	now, err := stampOf(c.pkg(hash))
	if err != nil {
		return false
	}
	if c.seen[hash] == now {
		return true
	}
	got, err := hashOf(c.pkg(hash))
	after, again := stampOf(c.pkg(hash))
	if err != nil || again != nil || got != hash || after != now {
		return false
	}
	if c.seen == nil {
		c.seen = map[string]string{}
	}
	c.seen[hash] = now
	return true
}

func (c *Cache) pkg(hash string) string { return filepath.Join(c.Dir, "packages", hash) }

// copyPackage copies a directory that an engine wrote: plain files, and not too much.
func copyPackage(ctx context.Context, from *os.Root, to string, most int64) error {
	files := 0
	return fs.WalkDir(from.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case path == ".":
			return nil
		case d.IsDir():
			return os.Mkdir(filepath.Join(to, path), 0o755)
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is no file", path)
		}
		if files++; files > maxFiles {
			return fmt.Errorf("it has more than %d files", maxFiles)
		}
		n, err := copyFile(from, path, filepath.Join(to, path), most)
		if most -= n; err == nil && most < 0 {
			err = errors.New("it is larger than the cache")
		}
		return err
	})
}

func copyFile(from *os.Root, path, to string, most int64) (n int64, err error) {
	in, err := from.OpenFile(path, os.O_RDONLY|noWait, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, errors.Join(err, fmt.Errorf("%s is no file", path))
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644|info.Mode().Perm()&0o111)
	if err != nil {
		return 0, err
	}
	n, err = io.Copy(out, io.LimitReader(in, most+1))
	// On disk before the rename: a power cut leaves no torn package under a hash.
	return n, errors.Join(err, out.Sync(), out.Close())
}
