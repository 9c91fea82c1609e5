package terraform

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/runner/engine/job"
)

// What is in pinned/.
const (
	planFile      = "plan.tfplan"
	pinnedFile    = "terraform.json"
	ephemeralFile = "ephemeral.tfvars.json"
	inputsFile    = "inputs.json" // for looks for drift
	generatedDir  = "generated"
)

// pinned is pinned/terraform.json: with the saved plan, the provider lock file
// and the generated files all that an apply needs in addition to the artifact.
type pinned struct {
	Format           int               `json:"format"`
	Tool             string            `json:"tool"` // "" from before there were two
	TerraformVersion string            `json:"terraform_version"`
	EnvVars          map[string]string `json:"env_vars"`
	// Ephemeral variables are in no plan file, so an apply needs them again.
	Ephemeral bool `json:"ephemeral"`
}

const pinnedFormat = 1

// maxGenerated bounds the files that a plan adds to its module, together; they
// are sealed and stored with the plan.
const maxGenerated = 128 << 20 // bytes

// pin writes out/pinned next to the saved plan.
func (w *workspace) pin(j *job.Job, in inputs, before map[string]fileMark) error {
	ephemeral := map[string]any{}
	for name, value := range in.Vars {
		if w.module.Variables[name].Ephemeral {
			ephemeral[name] = value
		}
	}
	if err := job.WriteJSON(j.Out("pinned", inputsFile), in); err != nil {
		return err
	}
	if len(ephemeral) > 0 {
		if err := job.WriteJSON(j.Out("pinned", ephemeralFile), ephemeral); err != nil {
			return err
		}
	}
	if err := copyFile(filepath.Join(w.dir, lockFile), j.Out("pinned", lockFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := w.pinGenerated(j, before); err != nil {
		return err
	}
	if w.standIn != nil {
		if err := job.WriteJSON(j.Out("pinned", rehearsedFile), w.standIn.Rehearsed); err != nil {
			return err
		}
	}
	return job.WriteJSON(j.Out("pinned", pinnedFile), pinned{
		Format: pinnedFormat, Tool: w.tf.name(), TerraformVersion: w.version, EnvVars: in.EnvVars, Ephemeral: len(ephemeral) > 0,
	})
}

// fileMark tells whether a file was written since.
type fileMark struct {
	size  int64
	mtime int64 // ns
}

// listFiles marks the files of a directory, without Terraform's own: providers
// are installed again, by the lock file. Downloaded modules count.
func listFiles(dir string) (map[string]fileMark, error) {
	marks := map[string]fileMark{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if e.IsDir() && name == filepath.Join(dataDir, "providers") {
			return fs.SkipDir
		}
		inData := strings.HasPrefix(name, dataDir+string(filepath.Separator))
		isModule := strings.HasPrefix(name, filepath.Join(dataDir, "modules")+string(filepath.Separator))
		if !e.Type().IsRegular() || name == lockFile || ours(name) || inData && !isModule {
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		marks[name] = fileMark{info.Size(), info.ModTime().UnixNano()}
		return nil
	})
	return marks, err
}

// pinGenerated keeps the files that init and plan made in the module, such as
// downloaded modules and the archives of archive_file: an apply runs in a fresh
// copy, where they would be missing.
func (w *workspace) pinGenerated(j *job.Job, before map[string]fileMark) error {
	after, err := listFiles(w.dir)
	if err != nil {
		return err
	}
	var total int64
	for name, mark := range after {
		if before[name] == mark {
			continue
		}
		if total += mark.size; total > maxGenerated {
			return job.Failf("let the module write large files outside of its directory",
				"the plan of %s writes more than %d MiB of files into the module", j.Subject(), maxGenerated>>20)
		}
		if err := copyFile(filepath.Join(w.dir, name), j.Out("pinned", generatedDir, name)); err != nil {
			return err
		}
	}
	return nil
}

// restore brings what a plan pinned, which is in the directory, into a fresh copy of the
// module.
func (w *workspace) restore(pinned string) error {
	generated := filepath.Join(pinned, generatedDir)
	err := filepath.WalkDir(generated, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(generated, path)
		if err != nil {
			return err
		}
		return copyFile(path, filepath.Join(w.dir, name))
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("restore the files of the plan: %w", err)
	}
	if err := copyFile(filepath.Join(pinned, lockFile), filepath.Join(w.dir, lockFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// copyFile copies a regular file with its executable bit, for the engine's user
// alone, over what is there.
func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if err := job.WriteFile(to, data); err != nil {
		return err
	}
	return os.Chmod(to, 0o600|info.Mode()&0o100)
}
