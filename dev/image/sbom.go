package image

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// SBOMType is the media type of an SBOM, and the artifact type of its referrer.
const SBOMType = "application/vnd.cyclonedx+json"

// An Inventory is what an SBOM lists.
type Inventory struct {
	Name, Version string
	Created       time.Time
	Executables   []string  // on this machine
	Packages      []Package // of Debian
}

// SBOM lists, in CycloneDX JSON, the executables of an image with the modules
// that each links, as the Go linker wrote them into it, and its packages.
func (i Inventory) SBOM() ([]byte, error) {
	// An image may be called like its executable, and references are unique.
	root := cdx.Component{BOMRef: "image:" + i.Name, Type: cdx.ComponentTypeContainer, Name: i.Name, Version: i.Version}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: i.Created.UTC().Format(time.RFC3339), Component: &root}
	parts := collection{}

	var direct []string
	for _, file := range i.Executables {
		build, err := buildinfo.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("build info of %s: %w", file, err)
		}
		name := filepath.Base(file)
		parts.add(cdx.Component{BOMRef: name, Type: cdx.ComponentTypeApplication, Name: name, Version: i.Version}, parts.modules(build)...)
		direct = append(direct, name)
	}
	for _, p := range i.Packages {
		purl := fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s", p.Name, p.Version, p.Arch)
		parts.add(cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: p.Name, Version: p.Version, PackageURL: purl})
		direct = append(direct, purl)
	}
	direct = append(direct, parts.roots())
	parts.depend(root.BOMRef, direct)

	bom.Components, bom.Dependencies = parts.sorted()
	var out bytes.Buffer
	err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return out.Bytes(), err
}

// A collection holds each component once, by its reference.
type collection map[string]entry

type entry struct {
	component *cdx.Component // nil for the image itself
	needs     []string
}

func (c collection) add(component cdx.Component, needs ...string) {
	c[component.BOMRef] = entry{&component, needs}
}

func (c collection) depend(ref string, needs []string) { c[ref] = entry{needs: needs} }

// modules adds the modules of an executable and returns their references.
// Berth's own have no version of their own: they are the executable.
func (c collection) modules(build *debug.BuildInfo) []string {
	refs := []string{c.module("std", strings.TrimPrefix(build.GoVersion, "go"), "")}
	for _, m := range build.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if strings.HasPrefix(m.Path, ".") {
			continue
		}
		refs = append(refs, c.module(m.Path, m.Version, m.Sum))
	}
	return refs
}

func (c collection) module(path, version, sum string) string {
	purl := "pkg:golang/" + path + "@" + version
	component := cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl}
	if sum != "" {
		component.Properties = &[]cdx.Property{{Name: "go.sum", Value: sum}}
	}
	c.add(component)
	return purl
}

// roots adds where the certificate authorities are from.
func (c collection) roots() string {
	version := "devel"
	if own, ok := debug.ReadBuildInfo(); ok {
		for _, m := range own.Deps {
			if m.Path == RootsModule {
				version = m.Version
			}
		}
	}
	return c.module(RootsModule, version, "")
}

func (c collection) sorted() (*[]cdx.Component, *[]cdx.Dependency) {
	refs := make([]string, 0, len(c))
	for ref := range c {
		refs = append(refs, ref)
	}
	slices.Sort(refs)
	components, dependencies := []cdx.Component{}, []cdx.Dependency{}
	for _, ref := range refs {
		if component := c[ref].component; component != nil {
			components = append(components, *component)
		}
		needs := slices.Clone(c[ref].needs)
		slices.Sort(needs)
		needs = slices.Compact(needs)
		dependencies = append(dependencies, cdx.Dependency{Ref: ref, Dependencies: &needs})
	}
	return &components, &dependencies
}
