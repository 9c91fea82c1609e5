package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/registry"

	"github.com/berth-dev/berth/runner/engine/job"
)

// maxChartDepth bounds charts that are dependencies of dependencies.
const maxChartDepth = 8

// packDependencies puts what a chart depends on into its charts/: what lies
// there already is checked, a file:// one is copied from the source, any other
// is downloaded. Chart.lock, when there is one, says which versions.
func packDependencies(ctx context.Context, j *job.Job, tree *copier) error {
	p := &packer{j: j, tree: tree}
	err := p.pack(ctx, chartCopy{from: tree.from, to: tree.to})
	if err == nil || errors.Is(err, context.Cause(ctx)) {
		return err
	}
	if f, ok := errors.AsType[*job.Failure](err); ok {
		return f
	}
	if !strings.HasPrefix(err.Error(), "cannot load ") { // a file, which it names
		err = fmt.Errorf("%s: %w", chartutil.ChartfileName, err)
	}
	return wrong(j, err, "`helm dependency build` there says more")
}

type packer struct {
	j    *job.Job
	tree *copier
}

// A chartCopy is a chart in the directory to, copied from the source directory
// from.
type chartCopy struct {
	from, to string
	depth    int // how many charts have it as a dependency, one of the other
}

// pack completes a chart.
func (p *packer) pack(ctx context.Context, at chartCopy) error {
	c, err := loader.LoadDir(at.to)
	if err != nil {
		return err
	}
	if at.depth > maxChartDepth {
		return fmt.Errorf("chart %s is a dependency of more than %d charts, one of the other", c.Name(), maxChartDepth)
	}
	if err := checkLock(c); err != nil {
		return err
	}
	todo := &completing{chartCopy: at, chart: c}
	for i, dep := range c.Metadata.Dependencies {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := p.dependency(ctx, todo, i); err != nil {
			return fmt.Errorf("dependency %s of chart %s: %w", dep.Name, c.Name(), err)
		}
	}
	return nil
}

// completing is a chart whose dependencies are being packed.
type completing struct {
	chartCopy
	chart  *chart.Chart
	packed []*chart.Chart // so far; what lies in the source is in chart
}

// dependency packs the dependency at an index of Chart.yaml. A chart may depend
// on another one several times, under aliases: each of these takes the copy that
// has its version.
func (p *packer) dependency(ctx context.Context, at *completing, index int) error {
	dep, version := at.chart.Metadata.Dependencies[index], lockedVersion(at.chart, index)
	if vendored := named(at.chart.Dependencies(), dep.Name); len(vendored) > 0 {
		return checkVersions(vendored, version)
	}
	if copies := named(at.packed, dep.Name); len(copies) > 0 && checkVersions(copies, version) == nil {
		return nil
	}
	packed, err := p.fetch(ctx, at, dep, version)
	if err == nil {
		at.packed = append(at.packed, packed)
	}
	return err
}

// fetch copies a dependency from the source, or downloads it.
func (p *packer) fetch(ctx context.Context, at *completing, dep *chart.Dependency, version string) (*chart.Chart, error) {
	to := filepath.Join(at.to, "charts")
	if err := os.MkdirAll(to, 0o700); err != nil {
		return nil, err
	}
	local, isLocal := strings.CutPrefix(dep.Repository, "file://")
	if !isLocal {
		return p.download(ctx, dep, version, to)
	}
	source := local
	if !filepath.IsAbs(source) {
		source = filepath.Join(at.from, filepath.FromSlash(local))
	}
	if info, err := os.Stat(source); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("there is no directory %q next to the chart in the source", local)
	}
	if err := inside(p.tree.root, source); err != nil {
		return nil, fmt.Errorf("%q: %w", local, err)
	}
	name := dep.Name
	if len(named(at.packed, name)) > 0 { // another version of it has the name
		name += "-" + dep.Alias
	}
	part := &copier{root: p.tree.root, from: source, to: filepath.Join(to, name), files: p.tree.files, bytes: p.tree.bytes}
	if err := part.copy(ctx); err != nil {
		return nil, err
	}
	p.tree.files, p.tree.bytes = part.files, part.bytes
	p.tree.leftOut = append(p.tree.leftOut, part.leftOut...)
	packed, err := loader.LoadDir(part.to)
	if err != nil {
		return nil, err
	}
	if packed.Name() != dep.Name {
		return nil, fmt.Errorf("the chart at %q is %s", local, packed.Name())
	}
	if err := checkVersion(packed, version); err != nil {
		return nil, err
	}
	p.j.Logf("packed dependency %s %s from %s", dep.Name, packed.Metadata.Version, local)
	return packed, p.pack(ctx, chartCopy{from: source, to: part.to, depth: at.depth + 1})
}

// downloadTimeout is for one dependency: the index of its repository, which may
// be large, and the chart.
const downloadTimeout = 2 * time.Minute

// download fetches a packed chart into a directory, without credentials.
func (p *packer) download(ctx context.Context, dep *chart.Dependency, version, to string) (*chart.Chart, error) {
	if !strings.HasPrefix(dep.Repository, "https://") && !strings.HasPrefix(dep.Repository, "http://") && !registry.IsOCI(dep.Repository) {
		return nil, fmt.Errorf("repository %q is not known; write its https:// or oci:// address, or put the chart into charts/", dep.Repository)
	}
	settings := cli.New()
	settings.RepositoryConfig = p.j.Work("helm", "repositories.yaml")
	settings.RepositoryCache = p.j.Work("helm", "cache")
	settings.RegistryConfig = p.j.Work("helm", "registry.json")
	client, err := registry.NewClient(registry.ClientOptCredentialsFile(settings.RegistryConfig), registry.ClientOptWriter(io.Discard))
	if err != nil {
		return nil, err
	}
	finder := action.NewInstall(&action.Configuration{RegistryClient: client}).ChartPathOptions
	finder.Version = version
	name := dep.Name
	if registry.IsOCI(dep.Repository) {
		name = strings.TrimSuffix(dep.Repository, "/") + "/" + dep.Name
	} else {
		finder.RepoURL = dep.Repository
	}
	p.j.Logf("downloading dependency %s %s from %s", dep.Name, version, withoutCredentials(dep.Repository))
	var archive string
	err = patiently(ctx, p.j, withoutCredentials(dep.Repository), downloadTimeout, func() (err error) {
		archive, err = finder.LocateChart(name, settings)
		return err
	})
	if err != nil && ctx.Err() == nil {
		return nil, job.Failf(fmt.Sprintf("check its repository in %s, and that the Build Runner reaches it, or put the chart into charts/ (helm dependency build)",
			path.Join(p.j.Spec.Source.Directory, chartutil.ChartfileName)),
			"%s: dependency %s cannot be downloaded from %s: %s", describe(p.j.Spec.Source), dep.Name, withoutCredentials(dep.Repository), reason(err))
	}
	if err != nil {
		return nil, context.Cause(ctx)
	}
	packed, err := loader.LoadFile(archive)
	if err != nil {
		return nil, err
	}
	if err := checkVersion(packed, version); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(archive)
	if err != nil {
		return nil, err
	}
	return packed, os.WriteFile(filepath.Join(to, filepath.Base(archive)), data, 0o600)
}

// named are the charts of that name.
func named(charts []*chart.Chart, name string) []*chart.Chart {
	return slices.DeleteFunc(slices.Clone(charts), func(c *chart.Chart) bool { return c.Name() != name })
}

// lockedVersion is the exact version of Chart.lock for the dependency at an
// index of Chart.yaml, else the range that is asked for there. Helm locks in the
// order of Chart.yaml; an older lock may leave some out.
func lockedVersion(c *chart.Chart, index int) string {
	dep := c.Metadata.Dependencies[index]
	if c.Lock == nil {
		return dep.Version
	}
	same := func(locked *chart.Dependency) bool {
		return locked.Name == dep.Name && locked.Repository == dep.Repository
	}
	locked := c.Lock.Dependencies
	if len(locked) == len(c.Metadata.Dependencies) && same(locked[index]) {
		return locked[index].Version
	}
	if i := slices.IndexFunc(locked, same); i >= 0 {
		return locked[i].Version
	}
	return dep.Version
}

// checkVersions is checkVersion for the copies of a chart: one of them must do.
func checkVersions(copies []*chart.Chart, want string) error {
	var versions []string
	var err error
	for _, c := range copies {
		if err = checkVersion(c, want); err == nil {
			return nil
		}
		versions = append(versions, c.Metadata.Version)
	}
	if len(copies) == 1 {
		return err
	}
	slices.Sort(versions)
	return fmt.Errorf("version %s is wanted, %s are there", want, strings.Join(versions, " and "))
}

// checkVersion compares a chart with the version or range that is asked for.
func checkVersion(c *chart.Chart, want string) error {
	if want == "" {
		return nil
	}
	allowed, err := semver.NewConstraint(want)
	if err != nil {
		return fmt.Errorf("%q is neither a version nor a range", want)
	}
	v, err := semver.NewVersion(c.Metadata.Version)
	if err != nil {
		return fmt.Errorf("its version %q is none", c.Metadata.Version)
	}
	if !allowed.Check(v) {
		return fmt.Errorf("version %s is wanted, %s is there", want, c.Metadata.Version)
	}
	return nil
}

// checkLock compares Chart.lock with the dependencies of Chart.yaml, by the
// digest that Helm writes.
func checkLock(c *chart.Chart) error {
	if c.Lock == nil || c.Metadata.APIVersion == chart.APIVersionV1 {
		return nil
	}
	data, err := json.Marshal([2][]*chart.Dependency{c.Metadata.Dependencies, c.Lock.Dependencies})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	if c.Lock.Digest != "sha256:"+hex.EncodeToString(sum[:]) {
		return fmt.Errorf("chart %s: Chart.lock is not of the dependencies in Chart.yaml; run `helm dependency update`", c.Name())
	}
	return nil
}
