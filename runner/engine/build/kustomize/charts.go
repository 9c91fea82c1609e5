package kustomize

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// Chart is a chart that a kustomization takes from elsewhere.
type Chart struct {
	Name       string
	Version    string // "" is the newest one
	Repository string // https:// or oci://
}

// render makes resources of the charts of a kustomization, as `helm template`
// would for kustomize.
func (f *following) render(ctx context.Context, k kustomization) error {
	if !f.EnableHelm {
		return errors.New("it has helmCharts: set enable_helm = true for this component")
	}
	for i := range k.HelmCharts {
		c := &k.HelmCharts[i]
		objects, err := f.renderChart(ctx, k, c)
		if err != nil {
			return fmt.Errorf("chart %s: %w", c.Name, err)
		}
		f.charts++
		name := fmt.Sprintf(".berth-chart-%d.yaml", f.charts)
		f.tree.made[path.Join(k.dir, name)] = objects
		k.Resources = append(k.Resources, name)
		f.Logf("rendered chart %s %s of %s: %d bytes", c.Name, c.Version, shown(k.dir), len(objects))
	}
	k.HelmCharts, k.HelmGlobals = nil, nil
	return nil
}

func (f *following) renderChart(ctx context.Context, k kustomization, c *types.HelmChart) ([]byte, error) {
	loaded, err := f.load(ctx, k, c)
	if err != nil {
		return nil, err
	}
	if err := action.CheckDependencies(loaded, loaded.Metadata.Dependencies); err != nil {
		return nil, fmt.Errorf("%w: put them into its charts/ (helm dependency build)", err)
	}
	values, err := f.values(k, c)
	if err != nil {
		return nil, err
	}
	install := action.NewInstall(&action.Configuration{Log: func(string, ...any) {}})
	install.DryRun, install.ClientOnly, install.Replace = true, true, true
	install.IncludeCRDs, install.DisableHooks = c.IncludeCRDs, c.SkipHooks
	install.APIVersions = c.ApiVersions
	if install.ReleaseName = c.ReleaseName; c.ReleaseName == "" {
		install.ReleaseName = "release-name" // helm template's own
	}
	if install.Namespace = c.Namespace; c.Namespace == "" {
		install.Namespace = "default"
	}
	if c.KubeVersion != "" {
		if install.KubeVersion, err = chartutil.ParseKubeVersion(c.KubeVersion); err != nil {
			return nil, fmt.Errorf("kubeVersion %q is none", c.KubeVersion)
		}
	}
	r, err := install.RunWithContext(ctx, loaded, values)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString(r.Manifest)
	for _, hook := range r.Hooks {
		if c.SkipHooks || c.SkipTests && slices.Contains(hook.Events, release.HookTest) {
			continue
		}
		fmt.Fprintf(&out, "---\n# Source: %s\n%s\n", hook.Path, hook.Manifest)
	}
	if out.Len() > maxFile {
		return nil, fmt.Errorf("it renders to %d bytes, at most %d are possible", out.Len(), maxFile)
	}
	return out.Bytes(), nil
}

// load reads a chart of the source, else it is downloaded.
func (f *following) load(ctx context.Context, k kustomization, c *types.HelmChart) (*chart.Chart, error) {
	home := types.HelmDefaultHome
	if k.HelmGlobals != nil && k.HelmGlobals.ChartHome != "" {
		home = k.HelmGlobals.ChartHome
	}
	dir := path.Join(k.dir, home, c.Name)
	if f.tree.IsDir(dir) {
		return f.loadDirectory(dir)
	}
	switch {
	case c.Repo == "":
		return nil, fmt.Errorf("there is no %s in the source, and no repo to take it from", shown(dir))
	case !strings.HasPrefix(c.Repo, "https://") && !strings.HasPrefix(c.Repo, "oci://"):
		return nil, fmt.Errorf("repo %q: write its https:// or oci:// address, or put the chart into %s", c.Repo, shown(dir))
	case c.Version == "" || c.Devel:
		f.Logf("note: chart %s has no version, so each build takes the newest one", c.Name)
	}
	file, err := f.Chart(ctx, Chart{Name: c.Name, Version: c.Version, Repository: c.Repo})
	if err != nil {
		return nil, err
	}
	return loader.LoadFile(file)
}

func (f *following) loadDirectory(dir string) (*chart.Chart, error) {
	mount, rest := f.tree.find(dir)
	// Helm follows symlinks, so that a chart is loaded from files that were read
	// through the mount.
	var files []*loader.BufferedFile
	below := []string{rest}
	for len(below) > 0 {
		at := below[0]
		below = below[1:]
		handle, err := f.tree.mounts[mount].Open(filepath.FromSlash(at))
		if err != nil {
			return nil, cause(err)
		}
		entries, err := handle.ReadDir(-1)
		if err := errors.Join(err, handle.Close()); err != nil {
			return nil, cause(err)
		}
		slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		for _, e := range entries {
			name := path.Join(at, e.Name())
			if e.IsDir() {
				below = append(below, name)
				continue
			}
			data, err := f.tree.read(path.Join(mount, name))
			if err != nil {
				return nil, err
			}
			relative := strings.TrimPrefix(strings.TrimPrefix(name, rest), "/")
			files = append(files, &loader.BufferedFile{Name: relative, Data: data})
		}
	}
	return loader.LoadFiles(files)
}

// values are those of the chart's files, and inline ones over them, below them or
// in their place, as valuesMerge says.
func (f *following) values(k kustomization, c *types.HelmChart) (map[string]any, error) {
	var given map[string]any
	for _, file := range slices.Concat([]string{c.ValuesFile}, c.AdditionalValuesFiles) {
		if file == "" {
			continue
		}
		if err := f.stays(k.dir, file); err != nil {
			return nil, fmt.Errorf("values file %q: %w", file, err)
		}
		data, err := f.tree.ReadFile(path.Join(k.dir, file))
		if err != nil {
			return nil, err
		}
		values := map[string]any{}
		if err := yaml.Unmarshal(data, &values); err != nil {
			return nil, fmt.Errorf("values file %q: %w", file, err)
		}
		given = chartutil.MergeTables(values, given) // a later file wins
	}
	inline := map[string]any{}
	maps.Copy(inline, c.ValuesInline)
	switch c.ValuesMerge {
	case "", "override":
		return chartutil.MergeTables(inline, given), nil
	case "merge":
		return chartutil.MergeTables(given, inline), nil
	case "replace":
		return inline, nil
	}
	return nil, fmt.Errorf("valuesMerge %q is none of merge, override, replace", c.ValuesMerge)
}
