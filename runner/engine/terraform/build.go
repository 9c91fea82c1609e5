package terraform

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
	"github.com/berth-dev/berth/runner/engine/build"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/module"
	"github.com/berth-dev/berth/runner/engine/modulefetch"
)

// Build makes a module directory, ready for init: modules that it calls from elsewhere
// are in it.
func Build(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	return build.Folder{
		What: "terraform module", Tool: "terraform validate", Complete: modulefetch.Pack,
		Check: func(dir string) error { return checkModule(j, dir) },
	}.Build(ctx, j)
}

// checkModule reads a module and the modules that it calls by path, and logs what of it
// has no effect.
func checkModule(j *job.Job, root string) error {
	t := tree{root, j.Spec.Source.Tool == jobspec.ToolOpenTofu}
	if err := t.check(".", map[string]bool{}); err != nil {
		return err
	}
	m, err := module.Read(root, t.openTofu)
	if err != nil {
		return err
	}
	if err := errors.Join(checkOverrides(m), checkEncryption(m)); err != nil {
		return err
	}
	logBackend(j, m)
	return nil
}

// tree is a directory with a module and those that it calls by path.
type tree struct {
	root     string
	openTofu bool // which reads it
}

// errNoModule says that there is nothing to read, and where the other tool would find
// something.
func (t tree) errNoModule() error {
	if m, _ := module.Read(t.root, true); m != nil {
		return errors.New(`there are no .tf files in it, only files of OpenTofu: write tool = "opentofu" below [berth]`)
	}
	return errors.New("there are no .tf files in it, so it is no Terraform module")
}

// check reads a module and the modules that it calls by path.
func (t tree) check(dir string, seen map[string]bool) error {
	if seen[dir] {
		return nil
	}
	seen[dir] = true
	at := ""
	if dir != "." {
		at = dir + "/"
	}
	m, err := module.Read(filepath.Join(t.root, filepath.FromSlash(dir)), t.openTofu)
	switch {
	case errors.Is(err, module.ErrNoModule) && dir == ".":
		return t.errNoModule()
	case err != nil && at != "":
		return fmt.Errorf("in %s: %w", at, err)
	case err != nil:
		return err
	}
	for _, call := range m.Calls {
		if !call.Local() {
			continue
		}
		called := path.Join(dir, call.Source)
		if called == ".." || strings.HasPrefix(called, "../") {
			return fmt.Errorf("%s%s: module %q is called by %q, which is outside of the component's directory", at, call.At, call.Name, call.Source)
		}
		if _, err := os.Stat(filepath.Join(t.root, filepath.FromSlash(called))); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s%s: module %q is called by %q, which does not exist", at, call.At, call.Name, call.Source)
		}
		if err := t.check(called, seen); err != nil {
			return err
		}
	}
	return nil
}
