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
	if err := checkCalled(root, ".", map[string]bool{}); err != nil {
		return err
	}
	m, err := module.Read(root)
	if err != nil {
		return err
	}
	if err := checkOverrides(m); err != nil {
		return err
	}
	logBackend(j, m)
	return nil
}

// checkCalled reads the module in dir of root and the modules that it calls by path.
func checkCalled(root, dir string, seen map[string]bool) error {
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
		if err := checkCalled(root, called, seen); err != nil {
			return err
		}
	}
	return nil
}
