package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/dev/image"
)

// source is where the code is, as in its Go modules.
const source = "https://github.com/berth-dev/berth"

// options are what all images share.
type options struct {
	executables, packages string // folders, by architecture
	license               string // file with Berth's
	licenses              image.Licenses
	version, revision     string
	created               time.Time
	arches                []string
	out, push             string
}

// make writes one image to the layout OUT/NAME, in the place of an older one,
// and pushes it if that is wanted. It returns the digest of its index.
func (o options) make(ctx context.Context, r recipe) (string, error) {
	at := filepath.Join(o.out, r.Name)
	fresh := at + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return "", err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return "", err
	}
	store, err := image.Create(fresh, o.created)
	if err != nil {
		return "", err
	}
	var images []ocispec.Descriptor
	for _, arch := range o.arches {
		desc, err := o.forArch(ctx, store, r, arch)
		if err != nil {
			return "", err
		}
		images = append(images, desc)
	}
	index, err := store.Index(ctx, tag(o.version), images, o.labels(r))
	if err != nil {
		return "", err
	}
	if err := replaceDir(fresh, at); err != nil {
		return "", err
	}
	if o.push != "" {
		if _, err := image.Push(ctx, at, tag(o.version), o.push+"/"+r.Name); err != nil {
			return "", err
		}
	}
	return index.Digest.String(), nil
}

// forArch writes the image for one architecture, with its SBOM. An executable
// has a layer to itself: images that share it share the layer.
func (o options) forArch(ctx context.Context, store *image.Store, r recipe, arch string) (ocispec.Descriptor, error) {
	inventory := image.Inventory{Name: r.Name, Version: o.version, Created: o.created}
	trees := []image.Tree{image.Ground()}
	if r.Packages {
		tree, packages, err := image.Debian(ctx, filepath.Join(o.packages, arch))
		if err != nil {
			return ocispec.Descriptor{}, err
		}
		finish(tree)
		inventory.Packages = packages
		trees = append(trees, tree)
	}
	for _, name := range r.Executables {
		from := filepath.Join(o.executables, arch, name)
		tree := image.Tree{}
		tree.Executable(binDir+"/"+name, from)
		trees = append(trees, tree)
		inventory.Executables = append(inventory.Executables, from)
	}
	terms, err := o.terms(inventory.Executables)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	trees = append(trees, terms)
	var layers []image.Layer
	for _, tree := range trees {
		layer, err := store.Layer(ctx, tree)
		if err != nil {
			return ocispec.Descriptor{}, err
		}
		layers = append(layers, layer)
	}
	config := image.Config{Arch: arch, User: nonRoot, Env: r.Env, Entry: []string{"/" + binDir + "/" + r.Executables[0]}, Labels: o.labels(r)}
	desc, err := store.Image(ctx, config, layers)
	if err != nil {
		return desc, err
	}
	sbom, err := inventory.SBOM()
	if err != nil {
		return desc, err
	}
	return desc, store.Attach(ctx, desc, image.SBOMType, sbom)
}

// terms are the licenses of Berth and of what its executables link. Packages
// bring theirs.
func (o options) terms(executables []string) (image.Tree, error) {
	own, err := os.ReadFile(o.license)
	if err != nil {
		return nil, err
	}
	others, err := o.licenses.Of(executables)
	if err != nil {
		return nil, err
	}
	tree := image.Tree{}
	tree.File(docDir+"/LICENSE", own)
	tree.File(docDir+"/"+image.LicensesFile, others)
	return tree, nil
}

// finish makes what the scripts of the packages would have made.
func finish(tree image.Tree) {
	tree.File("etc/passwd", []byte("root:x:0:0:root:/:/bin/bash\nnonroot:x:65532:65532:nonroot:/tmp:/bin/bash\nengine:x:61000:61000:engine:/tmp:/bin/bash\n"))
	tree.File("etc/group", []byte("root:x:0:\nnonroot:x:65532:\nengine:x:61000:\n"))
	tree.Link("bin/sh", "bash")
	tree.Link("usr/bin/awk", "mawk")
}

func (o options) labels(r recipe) map[string]string {
	labels := map[string]string{
		ocispec.AnnotationTitle: r.Title, ocispec.AnnotationDescription: r.Description,
		ocispec.AnnotationVersion: o.version, ocispec.AnnotationCreated: o.created.Format(time.RFC3339),
		ocispec.AnnotationSource: source, ocispec.AnnotationLicenses: "Apache-2.0", ocispec.AnnotationVendor: "Berth",
	}
	if o.revision != "" {
		labels[ocispec.AnnotationRevision] = o.revision
	}
	return labels
}

var notInTags = regexp.MustCompile(`[^a-zA-Z0-9_.-]`)

// tag is a version as a tag: a registry takes no "+".
func tag(version string) string { return notInTags.ReplaceAllString(version, "-") }
