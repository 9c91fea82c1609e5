package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	cdx "github.com/CycloneDX/cyclonedx-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry"

	"github.com/berth-dev/berth/dev/image"
)

// labels that every image has.
var wantedLabels = []string{
	ocispec.AnnotationTitle, ocispec.AnnotationDescription, ocispec.AnnotationVersion, ocispec.AnnotationCreated,
	ocispec.AnnotationRevision, ocispec.AnnotationSource, ocispec.AnnotationLicenses, ocispec.AnnotationVendor,
}

// about checks what an image says of itself: its user, its labels, and the SBOM
// that refers to it, which has to be readable and name every executable.
func (c checker) about(ctx context.Context, one ocispec.Descriptor) error {
	var manifest ocispec.Manifest
	var config ocispec.Image
	if err := c.readJSON(ctx, one, &manifest); err != nil {
		return err
	}
	if err := c.readJSON(ctx, manifest.Config, &config); err != nil {
		return err
	}
	var errs []error
	if config.Config.User != nonRoot {
		errs = append(errs, fmt.Errorf("runs as %q, want %s", config.Config.User, nonRoot))
	}
	for _, label := range wantedLabels {
		if config.Config.Labels[label] == "" || manifest.Annotations[label] != config.Config.Labels[label] {
			errs = append(errs, fmt.Errorf("label %s is %q, and %q as annotation", label, config.Config.Labels[label], manifest.Annotations[label]))
		}
	}
	return errors.Join(append(errs, c.sbom(ctx, one))...)
}

func (c checker) sbom(ctx context.Context, one ocispec.Descriptor) error {
	referrers, err := registry.Referrers(ctx, c.store, one, image.SBOMType)
	if err != nil {
		return fmt.Errorf("find SBOM: %w", err)
	}
	if len(referrers) != 1 {
		return fmt.Errorf("it has %d SBOMs, want one", len(referrers))
	}
	var manifest ocispec.Manifest
	if err := c.readJSON(ctx, referrers[0], &manifest); err != nil {
		return fmt.Errorf("SBOM: %w", err)
	}
	if len(manifest.Layers) != 1 {
		return fmt.Errorf("its SBOM has %d parts, want one", len(manifest.Layers))
	}
	raw, err := content.FetchAll(ctx, c.store, manifest.Layers[0])
	if err != nil {
		return fmt.Errorf("SBOM: %w", err)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(raw), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		return fmt.Errorf("SBOM: %w", err)
	}
	for _, name := range c.recipe.Executables {
		if bom.Components == nil || !slices.ContainsFunc(*bom.Components, func(p cdx.Component) bool { return p.Name == name && p.Type == cdx.ComponentTypeApplication }) {
			return fmt.Errorf("its SBOM does not name %s", name)
		}
	}
	return nil
}

func (c checker) readJSON(ctx context.Context, desc ocispec.Descriptor, into any) error {
	raw, err := content.FetchAll(ctx, c.store, desc)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}
