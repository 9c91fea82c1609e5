package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Bounds of one exported directory: what an uploaded one may have, too.
const (
	maxExportBytes = 512 << 20
	maxExportFiles = 100_000
)

// OnDisk tells whether the repository is on this machine's disk. An engine
// cannot read it there: it has another user, maybe another machine. So such a
// source is exported here and travels as an archive.
func (c Commit) OnDisk() bool { return strings.HasPrefix(c.URL, "file:") }

// Export writes a directory of a commit on disk to dest, which is made. No hook,
// filter or submodule of the repository is followed. Its errors are as
// Resolve's.
func (r *Resolver) Export(ctx context.Context, c Commit, directory, dest string) error {
	u, err := url.Parse(c.URL)
	if err != nil || !c.OnDisk() {
		return refuse("%q is not on disk", c.URL)
	}
	repo, err := git.PlainOpen(u.Path)
	if err != nil {
		return &Error{text: "the repository can no longer be read", cause: err}
	}
	tree, err := treeOf(repo, c.Hash, directory)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dest, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dest) // names in a tree may be anything
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // a handle, nothing is written through it
	e := export{root: root, bytes: maxExportBytes, files: maxExportFiles}
	return tree.Files().ForEach(func(f *object.File) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return e.add(f)
	})
}

func treeOf(repo *git.Repository, hash, directory string) (*object.Tree, error) {
	commit, err := repo.CommitObject(plumbing.NewHash(hash))
	if err != nil {
		return nil, &Error{text: fmt.Sprintf("commit %s is not there any more", hash), cause: err}
	}
	tree, err := commit.Tree()
	if err != nil {
		return nil, &Error{text: fmt.Sprintf("commit %s cannot be read", hash), cause: err}
	}
	if directory = path.Clean(directory); directory == "." {
		return tree, nil
	}
	if tree, err = tree.Tree(directory); err != nil {
		return nil, &Error{text: fmt.Sprintf("commit %s has no directory %q", hash, directory), cause: err, Key: KeyDirectory}
	}
	return tree, nil
}

// export is one under way, with what may still be written.
type export struct {
	root  *os.Root
	bytes int64
	files int
}

func (e *export) add(f *object.File) error {
	e.files--
	e.bytes -= f.Size
	if e.files < 0 || e.bytes < 0 {
		return refuse("the directory has more than %d files or %d MiB", maxExportFiles, maxExportBytes>>20)
	}
	if dir := path.Dir(f.Name); dir != "." {
		if err := e.root.MkdirAll(filepath.FromSlash(dir), 0o700); err != nil {
			return hostile(f.Name, err)
		}
	}
	if f.Mode == filemode.Symlink {
		target, err := f.Contents()
		if err != nil {
			return &Error{text: fmt.Sprintf("%s cannot be read from the repository", f.Name), cause: err}
		}
		return hostile(f.Name, e.root.Symlink(target, filepath.FromSlash(f.Name)))
	}
	return e.write(f)
}

func (e *export) write(f *object.File) error {
	mode := fs.FileMode(0o600)
	if f.Mode == filemode.Executable {
		mode = 0o700
	}
	in, err := f.Reader()
	if err != nil {
		return &Error{text: fmt.Sprintf("%s cannot be read from the repository", f.Name), cause: err}
	}
	defer in.Close()
	out, err := e.root.OpenFile(filepath.FromSlash(f.Name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return hostile(f.Name, err)
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// hostile is the error of a name that cannot be written as it is. A full disk
// looks much the same, so it is worth another try.
func hostile(name string, err error) error {
	if err == nil || errors.Is(err, fs.ErrPermission) {
		return err
	}
	return &Error{text: fmt.Sprintf("the repository has a file %q that cannot be written", name), cause: err, Transient: true}
}
