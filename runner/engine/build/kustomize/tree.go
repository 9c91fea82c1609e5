package kustomize

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const (
	maxFile  = 8 << 20   // bytes of one file
	maxBytes = 128 << 20 // of all that is read, each time it is
	maxReads = 5_000     // files; a base that is used twice is read twice
)

const (
	sourceMount  = "/source" // where the source stands in a tree
	ownDirectory = "/berth"  // what is made here and replaces nothing
)

// tree is all that kustomize can read: directories under names of ours, and
// files made here. It writes nothing. What is above its limits is an error, which
// ends kustomize also where bases that use bases multiply.
type tree struct {
	ctx    context.Context //nolint:containedctx // kustomize takes none, so reading ends when it does
	mounts map[string]*os.Root
	made   map[string][]byte // files of ours, which win
	masks  masks
	reads  int
	bytes  int64
	// fault is why nothing more is read, which kustomize would say in the middle of
	// all the bases that led there.
	fault error
}

func newTree(ctx context.Context) *tree {
	return &tree{ctx: ctx, mounts: map[string]*os.Root{}, made: map[string][]byte{}, masks: masks{}}
}

// mount lets a directory stand in the tree.
func (t *tree) mount(at, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	t.mounts[at] = root
	return nil
}

func (t *tree) close() error {
	var err error
	for _, root := range t.mounts {
		err = errors.Join(err, root.Close())
	}
	return err
}

// find tells which mount a path is in, and the rest of it; "" for none.
func (t *tree) find(name string) (mount, rest string) {
	name = path.Clean("/" + name)
	for at := range t.mounts {
		if name == at {
			return at, "."
		}
		if rest, ok := strings.CutPrefix(name, at+"/"); ok {
			return at, rest
		}
	}
	return "", ""
}

func (t *tree) stat(name string) (fs.FileInfo, error) {
	mount, rest := t.find(name)
	if mount == "" {
		return nil, fmt.Errorf("%s: %w", shown(name), fs.ErrNotExist)
	}
	info, err := t.mounts[mount].Stat(filepath.FromSlash(rest))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", shown(name), cause(err))
	}
	return info, nil
}

// IsDir tells whether a directory is there.
func (t *tree) IsDir(name string) bool {
	info, err := t.stat(name)
	return err == nil && info.IsDir()
}

// Exists tells whether a file or a directory is there.
func (t *tree) Exists(name string) bool {
	if _, ok := t.made[path.Clean("/"+name)]; ok {
		return true
	}
	_, err := t.stat(name)
	return err == nil
}

// CleanedAbs divides a path into its directory and its file, "" for a directory.
func (t *tree) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	name = path.Clean("/" + name)
	if _, ok := t.made[name]; ok {
		return filesys.ConfirmedDir(path.Dir(name)), path.Base(name), nil
	}
	if name == ownDirectory {
		return filesys.ConfirmedDir(name), "", nil
	}
	info, err := t.stat(name)
	switch {
	case err != nil:
		return "", "", err
	case info.IsDir():
		return filesys.ConfirmedDir(name), "", nil
	}
	return filesys.ConfirmedDir(path.Dir(name)), path.Base(name), nil
}

// ReadFile reads a file; templates in text are words, which masks.restore knows.
func (t *tree) ReadFile(name string) ([]byte, error) {
	data, err := t.read(name)
	if err != nil || !utf8.Valid(data) {
		return data, err
	}
	text := t.masks.hide(string(data))
	if err := checkAliases(text); err != nil {
		t.fault = fmt.Errorf("%s: %w", shown(name), err)
		return nil, t.fault
	}
	return []byte(text), nil
}

func (t *tree) read(name string) ([]byte, error) {
	if t.ctx.Err() != nil {
		return nil, context.Cause(t.ctx)
	}
	if t.fault != nil {
		return nil, t.fault
	}
	name = path.Clean("/" + name)
	data, ok := t.made[name]
	if !ok {
		info, err := t.stat(name)
		switch {
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular():
			return nil, fmt.Errorf("%s is not a file", shown(name))
		case info.Size() > maxFile:
			return nil, fmt.Errorf("%s has %d bytes, at most %d are possible", shown(name), info.Size(), maxFile)
		}
		mount, rest := t.find(name)
		if data, err = t.mounts[mount].ReadFile(filepath.FromSlash(rest)); err != nil {
			return nil, fmt.Errorf("%s: %w", shown(name), cause(err))
		}
	}
	t.reads++
	t.bytes += int64(len(data))
	if t.reads > maxReads || t.bytes > maxBytes {
		t.fault = fmt.Errorf("the kustomization reads more than %d files or %d MiB, files that several bases use counted each time", maxReads, maxBytes>>20)
		return nil, t.fault
	}
	return data, nil
}

// cause is what is wrong, without the path of this machine.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// shown is a path as people know it.
func shown(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path.Clean("/"+name), sourceMount+"/"), "/")
}

var errReadOnly = errors.New("kustomize may only read here")

// The rest of filesys.FileSystem is for kustomize's editing commands and for
// programs that it starts.

// Create is refused.
func (t *tree) Create(string) (filesys.File, error) { return nil, errReadOnly }

// Mkdir is refused.
func (t *tree) Mkdir(string) error { return errReadOnly }

// MkdirAll is refused.
func (t *tree) MkdirAll(string) error { return errReadOnly }

// RemoveAll is refused.
func (t *tree) RemoveAll(string) error { return errReadOnly }

// WriteFile is refused.
func (t *tree) WriteFile(string, []byte) error { return errReadOnly }

// Open is refused.
func (t *tree) Open(string) (filesys.File, error) { return nil, errReadOnly }

// ReadDir is refused.
func (t *tree) ReadDir(string) ([]string, error) { return nil, errReadOnly }

// Glob is refused.
func (t *tree) Glob(string) ([]string, error) { return nil, errReadOnly }

// Walk is refused.
func (t *tree) Walk(string, filepath.WalkFunc) error { return errReadOnly }
