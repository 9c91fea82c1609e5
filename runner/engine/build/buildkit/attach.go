package buildkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/attest"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// Origin is what is known about a build when it is done.
type Origin struct {
	Name, Build, Builder, BuildKit string
	Source                         Resource
	Docker                         jobspec.Docker
	NoNetwork                      bool
	Bases                          []Resource
	Started, Finished              time.Time
}

// Made is what Attach found and made.
type Made struct {
	// Digest of the image.
	Digest digest.Digest
	// Notes are lines for the log.
	Notes []string
}

// predicateNote is the annotation that names the predicate of what refers to an image.
const predicateNote = "in-toto.io/predicate-type"

// layout is an OCI image layout on disk.
type layout string

// Attach makes the layout's index list the image alone, and after it what refers to
// it: its SLSA provenance, and for each platform an SPDX document of its packages.
func Attach(dir string, o Origin) (Made, error) {
	l := layout(dir)
	var index ocispec.Index
	if err := l.readJSON(ocispec.ImageIndexFile, &index); err != nil {
		return Made{}, err
	}
	if len(index.Manifests) != 1 {
		return Made{}, fmt.Errorf("BuildKit left %d images", len(index.Manifests))
	}
	image := bare(index.Manifests[0])
	made := Made{Digest: image.Digest}
	statement := newStatement(o, image.Digest)
	provenance, err := l.refer(image, attest.SLSA, statement)
	if err != nil {
		return made, err
	}
	list := []ocispec.Descriptor{image, provenance}
	platforms, err := l.platforms(image)
	if err != nil {
		return made, err
	}
	for _, p := range platforms {
		found, err := l.packages(p)
		if err != nil {
			return made, fmt.Errorf("packages of %s: %w", p.Digest, err)
		}
		document := found.document(o, p.Digest)
		sbom, err := l.refer(bare(p), attest.SPDX, newSBOM(o.Name, p.Digest, document))
		if err != nil {
			return made, err
		}
		list = append(list, sbom)
		made.Notes = append(made.Notes, found.note(platformName(p)))
	}
	index = ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: list}
	raw, err := json.Marshal(index)
	if err != nil {
		return made, err
	}
	return made, os.WriteFile(filepath.Join(dir, ocispec.ImageIndexFile), raw, 0o600)
}

// bare leaves out what BuildKit notes in the layout's index.
func bare(d ocispec.Descriptor) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
}

func platformName(d ocispec.Descriptor) string {
	if d.Platform == nil {
		return "the image"
	}
	name := d.Platform.OS + "/" + d.Platform.Architecture
	if d.Platform.Variant != "" {
		name += "/" + d.Platform.Variant
	}
	return name
}

// platforms are the manifests of an image, itself when it has no index.
func (l layout) platforms(image ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	if image.MediaType != ocispec.MediaTypeImageIndex {
		return []ocispec.Descriptor{image}, nil
	}
	var index ocispec.Index
	if err := l.readJSON(l.blob(image.Digest), &index); err != nil {
		return nil, err
	}
	return index.Manifests, nil
}

func (l layout) blob(d digest.Digest) string {
	return filepath.Join("blobs", d.Algorithm().String(), d.Encoded())
}

func (l layout) readJSON(name string, v any) error {
	raw, err := os.ReadFile(filepath.Join(string(l), name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (l layout) put(mediaType string, raw []byte) (ocispec.Descriptor, error) {
	d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(raw), Size: int64(len(raw))}
	return d, os.WriteFile(filepath.Join(string(l), l.blob(d.Digest)), raw, 0o600)
}

// refer adds a statement about an image, as a manifest that refers to it.
func (l layout) refer(subject ocispec.Descriptor, predicate string, statement any) (ocispec.Descriptor, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(statement); err != nil {
		return ocispec.Descriptor{}, err
	}
	layer, err := l.put(attest.StatementType, text.Bytes())
	if err != nil {
		return layer, err
	}
	layer.Annotations = map[string]string{predicateNote: predicate}
	config, err := l.put(ocispec.MediaTypeEmptyJSON, []byte("{}"))
	if err != nil {
		return config, err
	}
	raw, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: attest.StatementType,
		Config: config, Layers: []ocispec.Descriptor{layer}, Subject: &subject, Annotations: map[string]string{predicateNote: predicate},
	})
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return l.put(ocispec.MediaTypeImageManifest, raw)
}
