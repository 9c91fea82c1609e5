package kustomize

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

const (
	maxKustomizations = 1_000 // one that several use counts each time
	maxRemote         = 32    // repositories and files that are fetched
)

// following goes through all kustomizations that kustomize will read, before it
// does.
type following struct {
	Config
	tree    *tree
	uses    map[string]int        // by directory: how many kustomizations it is made of, itself included
	fetched map[Repository]string // where it is mounted
	remote  int
	charts  int
}

// follow looks at the kustomization of a directory and at all that it is made
// of. What has to be fetched or rendered is in the tree afterwards, and the
// kustomization names it there.
func (f *following) follow(ctx context.Context, dir string) error {
	if _, seen := f.uses[dir]; seen {
		return nil // kustomize finds cycles
	}
	uses := 1
	f.uses[dir] = uses
	file, k, err := f.read(dir)
	if err != nil {
		return err
	}
	at := kustomization{dir: dir, file: file, Kustomization: k}
	if err := f.checkFiles(at); err != nil {
		return fmt.Errorf("%s: %w", shown(path.Join(dir, file)), err)
	}
	changed := false
	for _, list := range []*[]string{&k.Resources, &k.Components} {
		for i, entry := range *list {
			local, err := f.local(ctx, at, entry)
			if err != nil {
				return fmt.Errorf("%s: %q: %w", shown(path.Join(dir, file)), withoutUser(f.tree.masks.put(entry)), err)
			}
			changed = changed || local != entry
			(*list)[i] = local
			if below := path.Join(dir, local); f.tree.IsDir(below) {
				if err := f.follow(ctx, below); err != nil {
					return err
				}
				if uses += f.uses[below]; uses > maxKustomizations {
					return fmt.Errorf("%s reads more than %d kustomizations, those that several use counted each time", shown(dir), maxKustomizations)
				}
			}
		}
	}
	f.uses[dir] = uses
	if len(k.HelmCharts) > 0 {
		if err := f.render(ctx, at); err != nil {
			return fmt.Errorf("%s: %w", shown(path.Join(dir, file)), err)
		}
		changed = true
	}
	if changed {
		return f.write(dir, file, k)
	}
	return nil
}

// kustomization is a file that is followed.
type kustomization struct {
	dir, file string
	*types.Kustomization
}

// read reads the kustomization of a directory as kustomize does.
func (f *following) read(dir string) (file string, k *types.Kustomization, err error) {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if !f.tree.Exists(path.Join(dir, name)) {
			continue
		}
		if file != "" {
			return "", nil, fmt.Errorf("%s has both %s and %s", shown(dir), file, name)
		}
		file = name
	}
	if file == "" {
		return "", nil, fmt.Errorf("there is no kustomization.yaml in %s", shown(dir))
	}
	data, err := f.tree.ReadFile(path.Join(dir, file))
	if err != nil {
		return "", nil, err
	}
	k = &types.Kustomization{}
	if err := k.Unmarshal(data); err != nil {
		return "", nil, fmt.Errorf("%s: %s", shown(path.Join(dir, file)), f.tree.masks.put(err.Error()))
	}
	k.FixKustomization()
	return file, k, nil
}

// local is the path of a resource or a component that is there; one from
// elsewhere is fetched.
func (f *following) local(ctx context.Context, at kustomization, entry string) (string, error) {
	if !remote(entry) {
		return entry, f.stays(at.dir, entry)
	}
	if f.remote++; f.remote > maxRemote {
		return "", fmt.Errorf("more than %d bases from elsewhere are not supported", maxRemote)
	}
	address, err := parseAddress(entry)
	if err != nil {
		return "", err
	}
	if address.file != "" {
		data, err := f.File(ctx, address.file)
		if err != nil {
			return "", err
		}
		name := fmt.Sprintf(".berth-remote-%d.yaml", f.remote)
		f.tree.made[path.Join(at.dir, name)] = data
		return name, nil
	}
	mount := f.fetched[address.repository]
	if mount == "" {
		dir, err := f.Repository(ctx, address.repository)
		if err != nil {
			return "", err
		}
		mount = fmt.Sprintf("/remote/%d", f.remote)
		if err := f.tree.mount(mount, dir); err != nil {
			return "", err
		}
		f.fetched[address.repository] = mount
	}
	below := path.Join(mount, address.directory)
	if at, _ := f.tree.find(below); at != mount || !f.tree.Exists(below) {
		return "", fmt.Errorf("there is no %q in that repository", address.directory)
	}
	return filepath.Rel(at.dir, below)
}

// stays refuses an entry that is not there, or not where its kustomization is.
// What is not there kustomize would take for an address.
func (f *following) stays(dir, entry string) error {
	below := path.Join(dir, entry)
	from, _ := f.tree.find(dir)
	switch to, _ := f.tree.find(below); {
	case path.IsAbs(entry) || to != from:
		return errors.New("leads out of the source")
	case !f.tree.Exists(below):
		return errors.New("is not in the source")
	}
	return nil
}

// checkFiles refuses what is read from an address in another place than resources
// and components, and plugins.
func (f *following) checkFiles(k kustomization) error {
	files := slices.Concat(k.Crds, k.Configurations, []string{k.OpenAPI["path"]})
	for _, list := range [][]types.Patch{k.Patches, k.PatchesJson6902} { //nolint:staticcheck // deprecated, and read by kustomize
		for _, p := range list {
			files = append(files, p.Path)
		}
	}
	for _, p := range k.PatchesStrategicMerge { //nolint:staticcheck // the same
		files = append(files, string(p))
	}
	for _, r := range k.Replacements {
		files = append(files, r.Path)
	}
	for _, g := range k.ConfigMapGenerator {
		files = append(files, sources(g.KvPairSources)...)
	}
	for _, g := range k.SecretGenerator {
		files = append(files, sources(g.KvPairSources)...)
	}
	for _, name := range files {
		if file.MatchString(name) {
			return fmt.Errorf("%q is from elsewhere, which only resources and components may be: put a copy of it into the source", withoutUser(name))
		}
	}
	for _, plugin := range slices.Concat(k.Generators, k.Transformers, k.Validators) {
		if err := f.checkPlugin(k.dir, plugin); err != nil {
			return err
		}
	}
	return nil
}

// sources are the files of a generator, without their keys.
func sources(s types.KvPairSources) []string {
	all := slices.Concat(s.EnvSources, s.FileSources)
	if s.EnvSource != "" {
		all = append(all, s.EnvSource)
	}
	return all
}

// checkPlugin takes the configuration, or a file of it, of a generator, a
// transformer or a validator, if that is built into kustomize. A directory is
// refused: what a kustomization makes of it is not known before.
func (f *following) checkPlugin(dir, entry string) error {
	text := entry
	if !strings.Contains(entry, "\n") {
		if remote(entry) || f.tree.IsDir(path.Join(dir, entry)) {
			return fmt.Errorf("%q is not a file of the source, which generators, transformers and validators must be", entry)
		}
		data, err := f.tree.ReadFile(path.Join(dir, entry))
		if err != nil {
			return err
		}
		text = string(data)
	}
	in := yaml.NewDecoder(strings.NewReader(text))
	for {
		var doc yaml.Node
		if err := in.Decode(&doc); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("%q: %w", entry, err)
		}
		for _, n := range doc.Content {
			kind := field(n, "kind")
			if version := field(n, "apiVersion"); version == nil || version.Value != "builtin" || kind == nil || kind.Value == "HelmChartInflationGenerator" {
				return errors.New("plugins of kustomize that run programs are off: only those with apiVersion: builtin are possible, of charts helmCharts")
			}
			if at := addressIn(n); at != "" {
				return fmt.Errorf("%s reads %q, which is from elsewhere: put a copy of it into the source", kind.Value, withoutUser(at))
			}
		}
	}
}

// addressIn is a value below a node that is an address; "" for none.
func addressIn(n *yaml.Node) string {
	if n.Kind == yaml.AliasNode {
		return "" // of a value that is found itself
	}
	if n.Kind == yaml.ScalarNode && file.MatchString(n.Value) {
		return n.Value
	}
	for _, below := range n.Content {
		if at := addressIn(below); at != "" {
			return at
		}
	}
	return ""
}
