package build

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/build/kustomize"
	"github.com/berth-dev/berth/runner/engine/job"
)

// Folder is a build that takes the directory of a source as it is.
type Folder struct {
	What string // for the log
	// Check says what is wrong with the copy in dir; Tool is the command that says
	// more about it.
	Check func(dir string) error
	Tool  string
	// Complete adds to the copy what the source names and does not have; nil for nothing.
	Complete func(ctx context.Context, j *job.Job, dir string) ([]jobspec.Module, error)
}

// Build leaves the directory as the artifact.
func (f Folder) Build(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	tree, err := directory(ctx, j)
	if err != nil {
		return jobspec.Result{}, err
	}
	var result jobspec.Result
	if f.Complete != nil {
		if result.Modules, err = f.Complete(ctx, j, tree.to); err != nil {
			return result, err
		}
		if tree.files, tree.bytes, err = Fits(tree.to); err != nil {
			return result, job.Wrongf("use fewer or smaller modules", "%s with its modules: %v", describe(j.Spec.Source), err)
		}
	}
	if err := f.Check(tree.to); err != nil {
		return jobspec.Result{}, wrong(j, err, fmt.Sprintf("`%s` there says more", f.Tool))
	}
	tree.log(j)
	j.Logf("%s of %d files, %d bytes", f.What, tree.files, tree.bytes)
	return result, nil
}

// CopyTree copies a directory that was fetched from elsewhere, as a source is copied:
// without caches, keys and states, and with no link that leads out of it.
func CopyTree(ctx context.Context, from, to string) (leftOut []string, err error) {
	c := &copier{root: from, from: from, to: to}
	err = c.copy(ctx)
	return c.leftOut, err
}

// Checkout fetches one commit of a repository into a directory and checks it out; ref is
// a branch, a tag or a commit, "" for the default branch. Its transport is what go-git
// has for the address.
func Checkout(ctx context.Context, dir, address, ref string) (commit string, err error) {
	return fetchInto(ctx, dir, kustomize.Repository{URL: address, Ref: ref})
}

// directory copies the directory that a source names to out/artifact.
func directory(ctx context.Context, j *job.Job) (*copier, error) {
	root, err := source(ctx, j)
	if err != nil {
		return nil, err
	}
	s := j.Spec.Source
	dir := path.Clean("/" + filepath.ToSlash(s.Directory))[1:]
	if s.Kind == "archive" {
		dir = "" // the archive is the directory
	}
	from := filepath.Join(root, filepath.FromSlash(dir))
	if info, err := os.Stat(from); err != nil || !info.IsDir() {
		return nil, job.Wrongf(correct(j, "directory"), "%s: there is no directory %q", describe(s), dir)
	}
	// What is resolved may be elsewhere than what is named: a link of the
	// repository must not lead out of it.
	if err := inside(root, from); err != nil {
		return nil, job.Wrongf(correct(j, "directory"), "%s: directory %q: %v", describe(s), dir, err)
	}
	tree := &copier{root: root, from: from, to: j.Out("artifact")}
	if err := tree.copy(ctx); err != nil {
		return nil, job.Failf("correct "+folder(s), "%s: %v", describe(s), err)
	}
	return tree, nil
}

// source returns the directory with the whole source.
func source(ctx context.Context, j *job.Job) (string, error) {
	switch s := j.Spec.Source; s.Kind {
	case "archive":
		if s.Chart != nil {
			return unpack(j)
		}
		return j.In("source"), nil
	case "git":
		return checkout(ctx, j)
	default:
		return "", job.Refusef("run a newer runner", "a source of kind %q is not known", s.Kind)
	}
}

// describe names a source for people, without credentials.
func describe(s *jobspec.Source) string {
	if s.Chart != nil {
		return fmt.Sprintf("chart %s %s of %s", s.Chart.Name, s.Chart.Version, withoutCredentials(s.Repo))
	}
	if s.Kind == "archive" && s.Repo == "" {
		if s.Directory != "" {
			return path.Clean(s.Directory)
		}
		return "the uploaded directory"
	}
	ref := s.Ref
	if ref == "" {
		ref = s.Commit
	}
	return fmt.Sprintf("%s at %s", withoutCredentials(s.Repo), ref)
}
