package stage

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/pelletier/go-toml/v2"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/rehearsal"
)

// moduleDir is the directory of the stand-ins' module in a staged folder.
const moduleDir = "berth-rehearsal"

// module is what is built for every stand-in. The engine writes the one that it
// applies itself.
const module = "# A stand-in of a rehearsal. The engine gives it the outputs that the app reads.\n"

// aside are what no rehearsal needs, and what may name a part in a way that does not
// fit its stand-in.
var aside = []string{"installs", "installs.toml", "branches", "branch.toml", "policies", "policies.toml"}

// Write copies the app folder at from to the empty folder to, with what is changed.
// Without changes it is the folder as it is.
func Write(from, to string, app *appconfig.App, changes Changes) error {
	if err := copyFolder(from, to, !changes.None()); err != nil {
		return err
	}
	if changes.None() {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(to, moduleDir), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(to, moduleDir, "main.tf"), []byte(module), 0o644); err != nil {
		return err
	}
	s := staging{app: app, to: to}
	s.graph, _ = graph.New(app)
	for _, part := range slices.Sorted(maps.Keys(changes.StandIns)) {
		at, block, ok := s.standIn(part, changes.StandIns[part])
		if !ok {
			return fmt.Errorf("the app has no %s", part)
		}
		if changes.Files[at.File] != "" {
			continue // it goes with its file
		}
		if err := s.replace(at, block); err != nil {
			return fmt.Errorf("write the stand-in of %s: %w", part, err)
		}
	}
	return s.leaveOut(changes)
}

// leaveOut takes definitions and files out of the folder. The last tables of a list
// go first, so that the others keep their numbers.
func (s *staging) leaveOut(changes Changes) error {
	var places []place.Place
	for _, b := range Blocks(s.app) {
		if changes.Out[b.Part] != "" && changes.Files[b.At.File] == "" {
			places = append(places, b.At)
		}
	}
	slices.SortFunc(places, func(a, b place.Place) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(numberOf(b.Key), numberOf(a.Key)))
	})
	for _, at := range places {
		if err := s.remove(at); err != nil {
			return fmt.Errorf("leave out %s of %s: %w", at.Key, at.File, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(changes.Files)) {
		if err := s.removeFile(name, changes.Files[name]); err != nil {
			return fmt.Errorf("leave out %s: %w", name, err)
		}
	}
	return nil
}

// removeFile removes a file, or puts the least that will do in its place.
func (s *staging) removeFile(name, why string) error {
	path := filepath.Join(s.to, filepath.FromSlash(name))
	least := map[string]table{
		"metadata.toml": {"version": "v2"}, "stack.toml": s.stack(), "sandbox.toml": moduleOf(why),
	}[name]
	if whole := wholeFile(s.app); whole != "" && name == "stack.toml" {
		return s.replace(place.Place{File: whole, Key: appconfig.BlockStack}, least)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if least == nil {
		return nil
	}
	raw, err := toml.Marshal(least)
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o644)
}

// stack is the least that a stack of the app's platform says.
func (s *staging) stack() table {
	kind := map[rehearsal.Platform]string{rehearsal.AWS: "aws-cloudformation", rehearsal.GCP: "gcp-terraform", rehearsal.Azure: "azure-bicep"}[rehearsal.PlatformOf(s.app)]
	return table{"type": cmp.Or(kind, string(appconfig.StackLocal)), "name": "rehearsal", "description": "Made up for a rehearsal."}
}

// copyFolder copies files and links that lead to files of the folder.
func copyFolder(from, to string, partly bool) error {
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git", partly && slices.Contains(aside, name):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, filepath.FromSlash(name)), 0o755)
		case d.Type()&fs.ModeSymlink != 0:
			target, err := root.Readlink(name)
			if err != nil {
				return err
			}
			return os.Symlink(target, filepath.Join(to, filepath.FromSlash(name)))
		case !d.Type().IsRegular():
			return nil
		}
		raw, err := root.ReadFile(name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, filepath.FromSlash(name)), raw, info.Mode().Perm()|0o600)
	})
}

// staging is a folder that gets its stand-ins.
type staging struct {
	app   *appconfig.App
	graph *graph.Graph
	to    string
}
