// Package bom lists what an artifact contains and what it names, for its SBOM: modules and
// providers of Terraform, charts that a chart brings along, images that charts and manifests
// name. The agent makes the document, once the artifact has its digest, and signs it.
//
// It reads what a build left, which has passed the checks of its kind. What only the customer's
// values decide is not known here, and the comment says so.
package bom

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/berth-dev/berth/pkg/attest"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/module"
)

// File is what a build leaves in out/, next to the artifact.
const File = "packages.json"

// maxPackages bounds the list: an SBOM says then that it is not complete.
const maxPackages = 5000

// Leave lists the packages of what a build left. Kinds of which nothing can be listed, and
// images, which have an SBOM of their own, leave nothing.
func Leave(j *job.Job, modules []jobspec.Module) error {
	dir := j.Out("artifact")
	var c attest.Contents
	var err error
	switch j.Spec.Kind {
	case jobspec.KindTerraformModule:
		c, err = terraform(dir, j.Spec.Source.Tool == jobspec.ToolOpenTofu, modules)
	case jobspec.KindHelmChart:
		c, err = helmChart(dir)
	case jobspec.KindKubernetesManifest:
		c, err = manifest(dir)
	default:
		return nil
	}
	if err != nil {
		return fmt.Errorf("list packages: %w", err)
	}
	c.Packages = sorted(c.Packages)
	if len(c.Packages) > maxPackages {
		c.Packages = c.Packages[:maxPackages]
		c.Comment += fmt.Sprintf(" Incomplete: only the first %d.", maxPackages)
	}
	if c.Packages == nil {
		c.Packages = []attest.Package{}
	}
	return job.WriteJSON(j.Out(File), c)
}

func sorted(list []attest.Package) []attest.Package {
	slices.SortFunc(list, func(a, b attest.Package) int {
		return cmp.Or(cmp.Compare(a.Purpose, b.Purpose), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version), cmp.Compare(a.From, b.From))
	})
	return slices.Compact(list)
}

// terraform lists modules that were packed, and providers of all module folders: with the
// versions of the lock file where there is one, else as they are asked for.
func terraform(dir string, openTofu bool, modules []jobspec.Module) (attest.Contents, error) {
	c := attest.Contents{Comment: "Lists modules that the build fetched, and providers of Terraform: their versions are those of .terraform.lock.hcl, or else what the modules ask for."}
	for _, m := range modules {
		p := attest.Package{Name: m.Source, Version: cmp.Or(m.Version, m.Commit, m.Digest), From: m.From, Purpose: "LIBRARY"}
		if m.Commit != "" {
			p.From = "git+" + strings.TrimPrefix(m.From, "git::") + "@" + m.Commit
		}
		c.Packages = append(c.Packages, p)
	}
	locked, err := lockedProviders(filepath.Join(dir, ".terraform.lock.hcl"))
	if err != nil {
		return c, err
	}
	wanted := map[string]string{}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		m, err := module.Read(path, openTofu)
		if err != nil || m == nil {
			return nil //nolint:nilerr // no module, or one that the build does not use: it would have been refused
		}
		for _, p := range m.Providers {
			source := address(p.Source, openTofu)
			wanted[source] = cmp.Or(wanted[source], p.Version)
		}
		return nil
	})
	if err != nil {
		return c, err
	}
	for source, version := range locked {
		wanted[source] = version
	}
	for source, version := range wanted {
		p := attest.Package{Name: source, Version: version, Purpose: "APPLICATION", Named: true}
		if locked[source] != "" {
			p.PURL = "pkg:terraform/" + source + "@" + version
		}
		c.Packages = append(c.Packages, p)
	}
	return c, nil
}

// address is the address of a provider as lock files write it.
func address(source string, openTofu bool) string {
	host := "registry.terraform.io/"
	if openTofu {
		host = "registry.opentofu.org/"
	}
	if strings.Count(source, "/") == 1 {
		return host + source
	}
	return source
}

var (
	lockBlock   = regexp.MustCompile(`(?m)^provider "([^"]{1,300})" \{$`)
	lockVersion = regexp.MustCompile(`(?m)^\s+version\s*=\s*"([^"]{1,100})"$`)
)

// lockedProviders reads a lock file as Terraform writes it.
func lockedProviders(path string) (map[string]string, error) {
	raw, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	text := string(raw)
	starts := lockBlock.FindAllStringSubmatchIndex(text, -1)
	for i, at := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		if v := lockVersion.FindStringSubmatch(text[at[1]:end]); v != nil {
			found[text[at[2]:at[3]]] = v[1]
		}
	}
	return found, nil
}

// helmChart lists the charts that a chart brings along, and the images that values and
// templates name.
func helmChart(dir string) (attest.Contents, error) {
	c := attest.Contents{Comment: "Lists charts that the chart contains, and images that its values and templates name in words; what the values of an install make of them is not known here."}
	root, err := loader.LoadDir(dir)
	if err != nil {
		return c, err
	}
	var walk func(*chart.Chart)
	walk = func(one *chart.Chart) {
		c.Packages = append(c.Packages, imagesOf(one.Values, one.AppVersion())...)
		for _, t := range one.Templates {
			c.Packages = append(c.Packages, imagesIn(string(t.Data))...)
		}
		repositories := map[string]string{}
		for _, d := range one.Metadata.Dependencies {
			repositories[d.Name] = d.Repository
		}
		for _, d := range one.Dependencies() {
			p := attest.Package{Name: d.Name(), Version: d.Metadata.Version, Purpose: "LIBRARY", PURL: "pkg:helm/" + d.Name() + "@" + d.Metadata.Version}
			if from := repositories[d.Name()]; strings.HasPrefix(from, "https://") || strings.HasPrefix(from, "oci://") {
				p.From = from
			}
			c.Packages = append(c.Packages, p)
			walk(d)
		}
	}
	walk(root)
	return c, nil
}

// manifest lists the images that a manifest names.
func manifest(dir string) (attest.Contents, error) {
	c := attest.Contents{Comment: "Lists images that the manifest names in words; what templates make of an install's values is not known here."}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		c.Packages = append(c.Packages, imagesIn(string(raw))...)
		return err
	})
	return c, err
}

var imageLine = regexp.MustCompile(`(?m)^\s*(?:-\s+)?image:\s*["']?([A-Za-z0-9][^\s"'{}#]{0,500})["']?\s*(?:#.*)?$`)

// imagesIn finds images that stand in YAML as they are: not those that a template makes.
func imagesIn(text string) []attest.Package {
	var list []attest.Package
	for _, m := range imageLine.FindAllStringSubmatch(text, -1) {
		list = append(list, image(m[1]))
	}
	return list
}

// imagesOf finds images in a chart's values, as most charts write them: `image: NAME`, or
// repository, tag and registry below a key whose name ends in "image". A tag that is missing
// is the chart's appVersion by custom.
func imagesOf(values map[string]any, appVersion string) []attest.Package {
	var list []attest.Package
	for key, v := range values {
		called := strings.HasSuffix(strings.ToLower(key), "image")
		switch v := v.(type) {
		case string:
			if called && v != "" && !strings.ContainsAny(v, " {}") {
				list = append(list, image(v))
			}
		case map[string]any:
			text := func(name string) string { s, _ := v[name].(string); return s }
			if repository := text("repository"); called && repository != "" {
				name := repository
				if registry := text("registry"); registry != "" {
					name = registry + "/" + repository
				}
				tag := text("tag")
				if tag == "" && v["tag"] != nil {
					tag = fmt.Sprint(v["tag"])
				}
				if tag = cmp.Or(tag, appVersion); tag != "" {
					name += ":" + tag
				}
				if digest := text("digest"); digest != "" {
					name += "@" + digest
				}
				list = append(list, image(name))
				continue
			}
			list = append(list, imagesOf(v, appVersion)...)
		case []any:
			for _, item := range v {
				if m, ok := item.(map[string]any); ok {
					list = append(list, imagesOf(m, appVersion)...)
				}
			}
		}
	}
	return list
}

// image is an image that an artifact names.
func image(ref string) attest.Package {
	name, digest, _ := strings.Cut(ref, "@")
	tag := ""
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name, tag = name[:i], name[i+1:]
	}
	p := attest.Package{Name: name, Version: cmp.Or(digest, tag), From: "oci://" + name, Purpose: "CONTAINER", Named: true}
	if digest != "" {
		p.PURL = "pkg:oci/" + name[strings.LastIndexByte(name, '/')+1:] + "@" + strings.ReplaceAll(digest, ":", "%3A") + "?repository_url=" + name
	}
	return p
}
