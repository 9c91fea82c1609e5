package kustomize

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// Config is what a build needs.
type Config struct {
	// Source is the directory that everything local is in.
	Source string
	// Path is the directory of the kustomization, below Source, with slashes.
	Path string
	// Patches are files, relative to Path or else to Base, or their text.
	Patches []string
	// Base is the directory that the component names as its source, below Source.
	Base string
	// EnableHelm lets kustomizations have charts.
	EnableHelm bool
	// AllFiles lets a kustomization read files outside of its directory, though not
	// outside of the source.
	AllFiles bool

	// Repository fetches a repository and returns its directory. The same one is
	// asked for once.
	Repository func(context.Context, Repository) (dir string, err error)
	// File fetches a file.
	File func(ctx context.Context, address string) ([]byte, error)
	// Chart downloads a packed chart and returns its file.
	Chart func(context.Context, Chart) (file string, err error)
	Logf  func(format string, args ...any)
}

// Build returns the manifest that kustomize makes. An error is about the source,
// unless a function of the Config returned it.
func Build(ctx context.Context, c Config) (manifest []byte, err error) {
	t := newTree(ctx)
	defer func() { err = errors.Join(err, t.close()) }()
	if err := t.mount(sourceMount, c.Source); err != nil {
		return nil, err
	}
	dir := path.Join(sourceMount, path.Clean("/"+c.Base), filepath.ToSlash(c.Path))
	if mount, _ := t.find(dir); mount != sourceMount {
		return nil, fmt.Errorf("path %q leads out of the source", c.Path)
	}
	if !t.IsDir(dir) {
		return nil, fmt.Errorf("there is no directory %q in the source", shown(dir))
	}
	f := &following{Config: c, tree: t, uses: map[string]int{}, fetched: map[Repository]string{}}
	if err := f.follow(ctx, dir); err != nil {
		return nil, err
	}
	if dir, err = f.patched(dir); err != nil {
		return nil, err
	}
	made, err := run(t, dir, c.AllFiles)
	if err != nil {
		return nil, err
	}
	return t.masks.restore(made)
}

// patched lays the component's own patches over a kustomization and returns the
// directory of the one that does.
func (f *following) patched(dir string) (string, error) {
	if len(f.Patches) == 0 {
		return dir, nil
	}
	below, err := filepath.Rel(ownDirectory, dir)
	if err != nil {
		return "", err
	}
	k := types.Kustomization{Resources: []string{filepath.ToSlash(below)}}
	k.FixKustomization()
	for _, patch := range f.Patches {
		text := patch
		if !strings.Contains(patch, "\n") && !strings.Contains(patch, ": ") {
			data, err := f.patchFile(dir, patch)
			if err != nil {
				return "", fmt.Errorf("patch %q: %w", patch, err)
			}
			text = string(data)
		}
		k.Patches = append(k.Patches, types.Patch{Patch: text})
	}
	return ownDirectory, f.write(ownDirectory, "kustomization.yaml", &k)
}

func (f *following) patchFile(dir, name string) ([]byte, error) {
	for _, from := range []string{dir, path.Join(sourceMount, f.Base)} {
		at := path.Join(from, filepath.ToSlash(name))
		if mount, _ := f.tree.find(at); mount != sourceMount {
			return nil, errors.New("leads out of the source")
		}
		if f.tree.Exists(at) {
			return f.tree.read(at)
		}
	}
	return nil, fmt.Errorf("there is no such file in %s", shown(dir))
}

// write puts a kustomization into the tree in the place of what is there.
func (f *following) write(dir, file string, k *types.Kustomization) error {
	data, err := yaml.Marshal(k)
	if err != nil {
		return err
	}
	f.tree.made[path.Join(dir, file)] = data
	return nil
}

// run is kustomize, with nothing on that starts a program.
func run(t *tree, dir string, allFiles bool) (manifest []byte, err error) {
	defer func() {
		if r := recover(); r != nil { // of hostile YAML; it is a library for tools that end then
			err = fmt.Errorf("kustomize broke down: %v", r)
		}
	}()
	options := krusty.MakeDefaultOptions() // plugins, functions and helm are off
	if allFiles {
		options.LoadRestrictions = types.LoadRestrictionsNone
	}
	objects, err := krusty.MakeKustomizer(options).Run(t, dir)
	if t.fault != nil {
		return nil, t.fault
	}
	if err != nil {
		return nil, fmt.Errorf("%s", strings.ReplaceAll(t.masks.put(err.Error()), sourceMount+"/", ""))
	}
	return objects.AsYaml()
}
