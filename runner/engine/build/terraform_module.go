package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/module"
)

// TerraformModule makes a module directory, ready for init.
func TerraformModule(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	root, err := source(ctx, j)
	if err != nil {
		return jobspec.Result{}, err
	}
	s := j.Spec.Source
	dir := path.Clean("/" + filepath.ToSlash(s.Directory))[1:]
	if s.Kind == "archive" {
		dir = "" // the archive is the directory
	}
	from := filepath.Join(root, filepath.FromSlash(dir))
	if info, err := os.Stat(from); err != nil || !info.IsDir() {
		return jobspec.Result{}, job.Failf("check directory, repo and branch", "%s: there is no directory %q", describe(s), dir)
	}
	// What is resolved may be elsewhere than what is named: a link of the
	// repository must not lead out of it.
	if err := inside(root, from); err != nil {
		return jobspec.Result{}, job.Failf("", "%s: directory %q: %v", describe(s), dir, err)
	}
	tree := copier{from: from, to: j.Out("artifact")}
	if err := tree.copy(ctx); err != nil {
		return jobspec.Result{}, job.Failf("", "%s: %v", describe(s), err)
	}
	if err := checkModule(tree.to, ".", map[string]bool{}); err != nil {
		return jobspec.Result{}, job.Failf("correct it; `terraform validate` in that directory says more", "%s: %v", describe(s), err)
	}
	for _, name := range tree.leftOut {
		j.Logf("left out: %s", name)
	}
	j.Logf("terraform module of %d files, %d bytes", tree.files, tree.bytes)
	return jobspec.Result{}, nil
}

// describe names a source for people, without credentials.
func describe(s *jobspec.Source) string {
	if s.Kind == "archive" {
		return "the uploaded directory"
	}
	ref := s.Ref
	if ref == "" {
		ref = s.Commit
	}
	return fmt.Sprintf("%s at %s", withoutCredentials(s.Repo), ref)
}

// source returns the directory with the whole source.
func source(ctx context.Context, j *job.Job) (string, error) {
	switch s := j.Spec.Source; s.Kind {
	case "archive":
		return j.In("source"), nil
	case "git":
		return checkout(ctx, j)
	default:
		return "", job.Refusef("run a newer runner", "a source of kind %q is not known", s.Kind)
	}
}

// checkModule reads a module and the modules that it calls by path.
func checkModule(root, dir string, seen map[string]bool) error {
	if seen[dir] {
		return nil
	}
	seen[dir] = true
	at := ""
	if dir != "." {
		at = dir + "/"
	}
	m, err := module.Read(filepath.Join(root, filepath.FromSlash(dir)))
	switch {
	case errors.Is(err, module.ErrNoModule) && dir == ".":
		return errors.New("there are no .tf files in it, so it is no Terraform module")
	case err != nil && at != "":
		return fmt.Errorf("in %s: %w", at, err)
	case err != nil:
		return err
	}
	if dir == "." && m.Backend != "" && m.Backend != "http" {
		return fmt.Errorf("%s: it declares where its state is kept (%q); remove that block: Berth keeps the state for the install", m.BackendAt, m.Backend)
	}
	for _, call := range m.Calls {
		if !call.Local() {
			continue
		}
		called := path.Join(dir, call.Source)
		if called == ".." || strings.HasPrefix(called, "../") {
			return fmt.Errorf("%s%s: module %q is called by %q, which is outside of the component's directory", at, call.At, call.Name, call.Source)
		}
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(called))); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s%s: module %q is called by %q, which does not exist", at, call.At, call.Name, call.Source)
		}
		if err := checkModule(root, called, seen); err != nil {
			return err
		}
	}
	return nil
}
