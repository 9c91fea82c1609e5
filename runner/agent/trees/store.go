package trees

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/runner/agent/disk"
)

// Limits of what is kept unpacked. Anything larger is unpacked for each job, and the
// trees that were used least lately make room.
const (
	maxTreeBytes = 256 << 20
	maxAllBytes  = 1 << 30
)

// Modes of shared files, which belong to the agent's user. Directories on the way are
// closed to others, so that everybody may read them means: every engine that is given
// one.
const (
	modeShared     = 0o444
	modeExecutable = 0o555
	modeDir        = 0o755
)

// Store is a directory of unpacked artifacts. Safe for concurrent use by one process.
type Store struct {
	dir    string
	layout *oci.Layout

	mu     sync.Mutex
	proofs map[digest.Digest]proof
	trees  map[digest.Digest]*tree
	names  int   // of directories, each used once
	clock  int64 // counts uses
	limit  int64 // maxAllBytes
}

// tree is one unpacked artifact.
type tree struct {
	mu    sync.Mutex // while it is unpacked
	dir   string     // "" before the first time
	items []item
	bytes int64
	used  int64 // clock
	users int
}

// item is a file, a directory or a symlink, in the order in which they can be made.
type item struct {
	path   string
	is     fs.FileMode // its type
	target string      // of a symlink
	stamp  stamp       // of a file
}

// errDamaged: what was unpacked is not there any more as it was.
var errDamaged = errors.New("the unpacked artifact was changed")

// Open empties dir, which only this process may use, and makes it: nothing that an
// earlier agent unpacked is used.
func Open(dir string, layout *oci.Layout) (*Store, error) {
	err := os.RemoveAll(dir)
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("unpacked artifacts: %w", err)
	}
	return &Store{dir: dir, layout: layout, proofs: map[digest.Digest]proof{}, trees: map[digest.Digest]*tree{}, limit: maxAllBytes}, nil
}

// Shared says whether a file of a job is one that other jobs may have too. Its owner
// and mode stay as they are.
func Shared(entry fs.DirEntry) bool {
	if !entry.Type().IsRegular() {
		return false
	}
	info, err := entry.Info()
	if err != nil {
		return false
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	return ok && sys.Nlink > 1
}

// Share makes dir, which may exist no more than Unpack allows, the unpacked artifact,
// as hard links to files that belong to the agent's user and nobody may write to. The
// first time unpacks and hashes; later ones compare what the file system says of each
// file, and unpack again what is not as it was. Where links cannot be made, or the tree
// is large, dir gets files of its own.
//
// The user that reads dir must not be the agent's.
func (s *Store) Share(ctx context.Context, artifact digest.Digest, dir string) error {
	t := s.hold(artifact)
	defer s.release(t)
	for range 2 {
		items, from, err := s.unpacked(ctx, artifact, t)
		if err != nil {
			return err
		}
		if from == "" {
			break // too large
		}
		err = link(items, from, dir)
		if err == nil {
			return nil
		}
		if gone := os.RemoveAll(dir); gone != nil {
			return errors.Join(err, gone)
		}
		if disk.Full(err) {
			return err
		}
		if !errors.Is(err, errDamaged) {
			break
		}
		t.discard(from)
	}
	return s.layout.Unpack(ctx, artifact, dir, oci.Limits{})
}

// hold gives the tree of an artifact, which stays while it is held.
func (s *Store) hold(artifact digest.Digest) *tree {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.trees[artifact]
	if t == nil {
		t = &tree{}
		s.trees[artifact] = t
	}
	s.clock++
	t.used = s.clock
	t.users++
	return t
}

func (s *Store) release(t *tree) {
	s.mu.Lock()
	t.users--
	over := s.excess()
	s.mu.Unlock()
	remove(over)
}

// excess takes the trees out of the store that were used least lately, until the rest
// fits. s.mu is held.
func (s *Store) excess() (dirs []string) {
	for {
		var all int64
		var oldest digest.Digest
		for artifact, t := range s.trees {
			all += t.bytes
			if t.users == 0 && t.bytes > 0 && (oldest == "" || t.used < s.trees[oldest].used) {
				oldest = artifact
			}
		}
		if all <= s.limit || oldest == "" {
			return dirs
		}
		dirs = append(dirs, s.trees[oldest].dir)
		delete(s.trees, oldest)
	}
}

// Prune deletes the trees of artifacts that are not in the registry any more.
func (s *Store) Prune() {
	s.drop(func(artifact digest.Digest) bool { return !s.layout.Has(artifact) })
}

// drop deletes the trees that nobody uses and that are meant.
func (s *Store) drop(meant func(digest.Digest) bool) {
	var dirs []string
	s.mu.Lock()
	for artifact, t := range s.trees {
		if t.users == 0 && meant(artifact) {
			dirs = append(dirs, t.dir)
			delete(s.trees, artifact)
		}
	}
	s.mu.Unlock()
	remove(dirs)
}

func remove(dirs []string) {
	for _, dir := range dirs {
		if dir != "" {
			_ = os.RemoveAll(dir) // the next start removes what is left
		}
	}
}

// unpacked is the tree's files and where they are; "" for one that is not kept. It
// unpacks what is not there.
func (s *Store) unpacked(ctx context.Context, artifact digest.Digest, t *tree) (items []item, dir string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dir != "" {
		return t.items, t.dir, nil
	}
	size, err := s.unpackedSize(ctx, artifact)
	if err != nil || size > maxTreeBytes {
		return nil, "", err
	}
	s.mu.Lock()
	s.names++
	dir = filepath.Join(s.dir, strconv.Itoa(s.names))
	s.mu.Unlock()
	err = s.layout.Unpack(ctx, artifact, dir, oci.Limits{})
	if disk.Full(err) { // what others unpacked can be unpacked again
		s.drop(func(digest.Digest) bool { return true })
		err = s.layout.Unpack(ctx, artifact, dir, oci.Limits{})
	}
	var bytes int64
	if err == nil {
		items, bytes, err = closeTree(dir)
	}
	if err != nil {
		return nil, "", errors.Join(err, os.RemoveAll(dir))
	}
	s.mu.Lock() // excess reads them
	t.dir, t.items, t.bytes = dir, items, bytes
	s.mu.Unlock()
	return items, dir, nil
}

// unpackedSize is what an artifact may become, in bytes: a tree is seldom more than ten
// times its archives.
func (s *Store) unpackedSize(ctx context.Context, artifact digest.Digest) (int64, error) {
	a, err := oci.Inspect(ctx, s.layout, artifact)
	return a.Size * 10, err
}

// discard forgets a tree that was damaged, unless another job has unpacked it again.
func (t *tree) discard(dir string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dir == dir {
		remove([]string{dir})
		t.dir, t.items = "", nil
	}
}

// closeTree takes the right to write from a tree that was unpacked just now, and lists
// it.
func closeTree(dir string) (items []item, bytes int64, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = root.Close() }()
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		next := item{path: name, is: entry.Type()}
		switch {
		case entry.Type()&fs.ModeSymlink != 0:
			next.target, err = root.Readlink(name)
		case entry.Type().IsRegular():
			next.stamp, err = closeFile(root, name)
			bytes += next.stamp.size
		}
		items = append(items, next)
		return err
	})
	return items, max(bytes, 1), err
}

func closeFile(root *os.Root, name string) (stamp, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return stamp{}, err
	}
	mode := fs.FileMode(modeShared)
	if info.Mode()&0o100 != 0 {
		mode = modeExecutable
	}
	if err := root.Chmod(name, mode); err != nil {
		return stamp{}, err
	}
	if info, err = root.Lstat(name); err != nil {
		return stamp{}, err
	}
	return stampOf(info)
}

// link makes dir of the same files. Each is compared once it is there: nobody can put
// another in its place any more.
func link(items []item, from, dir string) error {
	if err := os.Mkdir(dir, modeDir); err != nil {
		return err
	}
	for _, next := range items {
		to := filepath.Join(dir, filepath.FromSlash(next.path))
		var err error
		switch {
		case next.is.IsDir():
			err = os.Mkdir(to, modeDir)
		case next.is&fs.ModeSymlink != 0:
			err = os.Symlink(next.target, to)
		default:
			err = linkFile(filepath.Join(from, filepath.FromSlash(next.path)), to, next.stamp)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func linkFile(from, to string, want stamp) error {
	err := os.Link(from, to)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	if err != nil {
		return err
	}
	info, err := os.Lstat(to)
	if err != nil {
		return err
	}
	if got, err := stampOf(info); err != nil || !got.sameFile(want) {
		return fmt.Errorf("%w: %s", errDamaged, filepath.Base(from))
	}
	return nil
}
