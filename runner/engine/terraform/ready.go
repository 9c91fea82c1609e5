package terraform

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/module"
)

// initFile is what an init found out, in a job's folder: the engine leaves it in out/,
// and the agent gives it to the next job of the same resource in in/ while everything is
// the same that an init depends on (package inits of the agent).
//
// Vendor code runs between the init of a job and its end, and could have written the
// file. So nothing in it is believed: what it says is taken where it can do no more than
// an init would, and Terraform compares the rest with the module and the lock file. The
// worst that a false one does is that init runs after all.
const initFile = "init.json"

const initFormat = 1

// initialised is that file.
type initialised struct {
	Format    int    `json:"format"`
	Terraform string `json:"terraform"` // its version
	// LockBefore is the lock file that the module came with, Lock that after the init; ""
	// for none.
	LockBefore string `json:"lock_before"`
	Lock       string `json:"lock"`
	// Backend is Terraform's record of which backend was configured.
	Backend json.RawMessage `json:"backend"`
	// Providers are the directories of their packages, by HOST/NAMESPACE/TYPE/VERSION/TARGET.
	Providers map[string]string `json:"providers"`
}

// check says why what an init found out cannot be taken for this module, "" when it can.
// own are the directories in which engines write: a provider from there would be
// whatever an earlier engine put there. It does no I/O.
func (i initialised) check(version, lock string, own []string) string {
	switch {
	case i.Format != initFormat:
		return "it is of another version of Berth"
	case i.Terraform != version:
		return "it was made with terraform " + i.Terraform
	case lock != i.LockBefore && lock != i.Lock:
		return "the lock file has changed"
	}
	if why := checkBackend(i.Backend); why != "" {
		return why
	}
	for _, name := range slices.Sorted(maps.Keys(i.Providers)) {
		dir := i.Providers[name]
		parts := strings.Split(name, "/")
		switch {
		case len(parts) != 5 || !fs.ValidPath(name) || slices.Contains(parts, "."):
			return fmt.Sprintf("%q is no provider", name)
		case !filepath.IsAbs(dir) || filepath.Clean(dir) != dir:
			return fmt.Sprintf("%q is no directory of a provider", dir)
		case slices.ContainsFunc(own, func(o string) bool { return dir == o || strings.HasPrefix(dir, o+"/") }):
			return "the provider " + name + " is in a directory that engines write to"
		}
	}
	return ""
}

// checkBackend says what is wrong with a record of the backend: it may say that states
// are behind the address that the environment has, and nothing else.
func checkBackend(raw json.RawMessage) string {
	var record struct {
		Backend struct {
			Type   string         `json:"type"`
			Config map[string]any `json:"config"`
		} `json:"backend"`
	}
	if err := json.Unmarshal(raw, &record); err != nil {
		return "its record of the backend is damaged"
	}
	if record.Backend.Type != "http" {
		return "its states are elsewhere"
	}
	for _, value := range record.Backend.Config {
		if value != nil {
			return "its states are elsewhere"
		}
	}
	return ""
}

// moduleEntry is a line of Terraform's list of modules.
type moduleEntry struct {
	Key    string `json:"Key"`
	Source string `json:"Source"`
	Dir    string `json:"Dir"`
}

// ownModules lists the modules as init would, when all of them are part of the source
// tree; ok is false when one has to be fetched, or is called in circles.
func ownModules(t tree, m *module.Module) (entries []moduleEntry, ok bool) {
	entries = []moduleEntry{{Dir: "."}}
	type called struct {
		key, dir string
		m        *module.Module
	}
	open := []called{{dir: ".", m: m}}
	for len(open) > 0 {
		from := open[0]
		open = open[1:]
		for _, call := range from.m.Calls {
			dir := path.Join(from.dir, call.Source)
			key := strings.TrimPrefix(from.key+"."+call.Name, ".")
			if !call.Local() || !filepath.IsLocal(dir) || strings.Count(key, ".") > maxModuleDepth {
				return nil, false
			}
			m, err := module.Read(filepath.Join(t.root, filepath.FromSlash(dir)), t.openTofu)
			if err != nil {
				return nil, false
			}
			entries = append(entries, moduleEntry{Key: key, Source: call.Source, Dir: dir})
			open = append(open, called{key, dir, m})
		}
	}
	return entries, true
}

// maxModuleDepth is deeper than modules that anybody can read call each other.
const maxModuleDepth = 20

// readyWithoutInit makes of the workspace what init would make of it, from what an
// earlier one found out. It says no when there is nothing or it is of no use.
func (w *workspace) readyWithoutInit(j *job.Job) bool {
	var found initialised
	err := job.ReadJSON(j.In(initFile), &found)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	why := "it is damaged"
	if err == nil {
		if why, err = w.takeInit(j, found); err != nil {
			why = err.Error()
		}
	}
	if why == "" {
		j.Logf("terraform init is not needed: nothing has changed since an earlier one")
		return true
	}
	j.Logf("what an earlier terraform init found out is not taken: %s", why)
	_ = os.RemoveAll(filepath.Join(w.dir, dataDir))
	return false
}

func (w *workspace) takeInit(j *job.Job, found initialised) (why string, err error) {
	lock, err := readOptional(filepath.Join(w.dir, lockFile))
	if err != nil {
		return "", err
	}
	if why := found.check(w.version, string(lock), engineDirs(j)); why != "" {
		return why, nil
	}
	entries, ok := ownModules(w.tree(), w.module)
	if !ok {
		return "it calls modules that have to be fetched", nil
	}
	data := filepath.Join(w.dir, dataDir)
	for name, dir := range found.Providers {
		if !isPlace(dir) {
			return "the package of the provider " + name + " is not where it was", nil
		}
		link := filepath.Join(data, "providers", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
			return "", err
		}
		if err := os.Symlink(dir, link); err != nil {
			return "", err
		}
	}
	if len(entries) > 1 {
		if err := job.WriteJSON(filepath.Join(data, "modules", "modules.json"), map[string]any{"Modules": entries}); err != nil {
			return "", err
		}
	}
	if found.Lock != "" {
		if err := job.WriteFile(filepath.Join(w.dir, lockFile), []byte(found.Lock)); err != nil {
			return "", err
		}
	}
	return "", job.WriteFile(filepath.Join(data, backendRecord), found.Backend)
}

// backendRecord is where Terraform writes down which backend it was configured for.
const backendRecord = "terraform.tfstate"

// engineDirs are the directories in which engines write, this one or earlier ones.
func engineDirs(j *job.Job) []string {
	dirs := []string{j.Work(), j.Out(), os.TempDir()}
	if dir := j.Env["BERTH_INSTALL_DIR"]; dir != "" {
		dirs = append(dirs, dir)
	}
	for i, dir := range dirs {
		if place, err := filepath.EvalSymlinks(dir); err == nil {
			dirs[i] = place
		}
	}
	return dirs
}

// isPlace tells whether a path is there and leads through no symlink.
func isPlace(path string) bool {
	place, err := filepath.EvalSymlinks(path)
	return err == nil && place == path
}

// leaveInit leaves what the init found out to the next job, where that can be of use:
// not when modules were fetched, nor when a provider was unpacked into the job's folder,
// which goes with the job.
func (w *workspace) leaveInit(j *job.Job, lockBefore []byte) error {
	if _, ok := ownModules(w.tree(), w.module); !ok {
		return nil
	}
	found := initialised{Format: initFormat, Terraform: w.version, LockBefore: string(lockBefore), Providers: map[string]string{}}
	lock, err := readOptional(filepath.Join(w.dir, lockFile))
	if err != nil {
		return err
	}
	found.Lock = string(lock)
	if found.Backend, err = readOptional(filepath.Join(w.dir, dataDir, backendRecord)); err != nil || found.Backend == nil {
		return err
	}
	root := filepath.Join(w.dir, dataDir, "providers")
	packages, err := filepath.Glob(filepath.Join(root, "*", "*", "*", "*", "*"))
	if err != nil {
		return err
	}
	for _, pkg := range packages {
		name, err := filepath.Rel(root, pkg)
		if err != nil {
			return err
		}
		if found.Providers[filepath.ToSlash(name)], err = filepath.EvalSymlinks(pkg); err != nil {
			return err
		}
	}
	if found.check(w.version, found.Lock, engineDirs(j)) != "" {
		return nil
	}
	return job.WriteJSON(j.Out(initFile), found)
}

// notInitialised begin Terraform's words for a directory that lacks an init.
var notInitialised = []string{
	"Required plugins are not installed", "Inconsistent dependency lock file", "Backend initialization required",
	"Module not installed", "Module source has changed", "Module version requirements have changed",
}

// lacksInit tells whether a command failed since the directory is not initialised.
func lacksInit(err error) bool {
	return slices.ContainsFunc(diagnosticsOf(err), func(d diagnostic) bool {
		return slices.ContainsFunc(notInitialised, func(s string) bool { return strings.HasPrefix(d.Summary, s) })
	})
}
