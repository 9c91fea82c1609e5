package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
)

// Annotations that Berth sets or understands. "created" is missing on purpose:
// it would make equal artifacts differ.
const (
	AnnotationTitle    = ocispec.AnnotationTitle    // file or artifact name, for people
	AnnotationSource   = ocispec.AnnotationSource   // where the source came from, without credentials
	AnnotationRevision = ocispec.AnnotationRevision // the commit it was built from
)

// ErrNotFound is returned, wrapped, when a digest, tag or repository is not
// there. A registry answers the same for what exists but is not ours to see.
var ErrNotFound = errdef.ErrNotFound

// Kind is what an artifact is, in lower_snake.
type Kind string

// The kinds that Berth itself makes. Plugins may add others.
const (
	KindTerraformModule Kind = "terraform_module"    // a module directory, ready for init
	KindHelmChart       Kind = "helm_chart"          // a chart directory with its dependencies
	KindManifest        Kind = "kubernetes_manifest" // manifest.yaml, a template
	KindSource          Kind = "source"              // an uploaded or checked-out source tree
	KindConfigBundle    Kind = "config_bundle"       // an app folder as it was synced
	KindPlan            Kind = "plan"                // a sealed plan file
)

const (
	artifactTypePrefix = "application/vnd.berth."
	artifactTypeSuffix = ".v1"

	// maxManifestBytes bounds a manifest or index, which is held in memory. It
	// is the size that registries commonly accept.
	maxManifestBytes = 4 << 20
)

var kindPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// ArtifactType is the manifest's artifactType for this kind.
func (k Kind) ArtifactType() string { return artifactTypePrefix + string(k) + artifactTypeSuffix }

// KindOf is the reverse of [Kind.ArtifactType]; ok is false for a type that is
// not Berth's.
func KindOf(artifactType string) (k Kind, ok bool) {
	name, ok := strings.CutPrefix(artifactType, artifactTypePrefix)
	if !ok {
		return "", false
	}
	name, ok = strings.CutSuffix(name, artifactTypeSuffix)
	return Kind(name), ok && kindPattern.MatchString(name)
}

// Artifact is what a manifest says about itself.
type Artifact struct {
	Digest       digest.Digest
	ArtifactType string
	Kind         Kind // "" when ArtifactType is not one of Berth's
	Annotations  map[string]string
	Layers       []ocispec.Descriptor
	Size         int64 // bytes of manifest, config and layers
}

// Inspect reads the manifest of an artifact, verified against its digest. The
// layers are not looked at; see [Layout.Verify].
func Inspect(ctx context.Context, l *Layout, dgst digest.Digest) (Artifact, error) {
	desc, err := l.Resolve(ctx, dgst.String())
	if err != nil {
		return Artifact{}, err
	}
	m, err := readManifest(ctx, l, desc)
	if err != nil {
		return Artifact{}, err
	}
	a := Artifact{
		Digest: dgst, ArtifactType: m.ArtifactType, Annotations: m.Annotations, Layers: m.Layers,
		Size: desc.Size + m.Config.Size,
	}
	a.Kind, _ = KindOf(m.ArtifactType)
	for _, layer := range m.Layers {
		a.Size += layer.Size
	}
	return a, nil
}

// readManifest fetches and decodes an image manifest, checked against desc.
func readManifest(ctx context.Context, src content.Fetcher, desc ocispec.Descriptor) (ocispec.Manifest, error) {
	var m ocispec.Manifest
	if desc.MediaType != ocispec.MediaTypeImageManifest {
		return m, fmt.Errorf("artifact %s: media type %q is not an image manifest", desc.Digest, desc.MediaType)
	}
	raw, err := fetchManifest(ctx, src, desc)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("artifact %s: %w", desc.Digest, err)
	}
	return m, nil
}

// fetchManifest reads a manifest or index into memory and checks its digest.
func fetchManifest(ctx context.Context, src content.Fetcher, desc ocispec.Descriptor) ([]byte, error) {
	if desc.Size < 0 || desc.Size > maxManifestBytes {
		return nil, fmt.Errorf("manifest %s: %d bytes, at most %d allowed", desc.Digest, desc.Size, maxManifestBytes)
	}
	raw, err := content.FetchAll(ctx, src, desc)
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", desc.Digest, err)
	}
	return raw, nil
}

// pushArtifact writes the manifest of an artifact, given its type, layers and
// annotations, and its empty config. dst holds the layers already. The bytes
// depend on the arguments alone: map keys are sorted by encoding/json and no
// time is recorded.
func pushArtifact(ctx context.Context, dst content.Pusher, m ocispec.Manifest) (ocispec.Descriptor, error) {
	m.Versioned = specs.Versioned{SchemaVersion: 2}
	m.MediaType = ocispec.MediaTypeImageManifest
	m.Config = ocispec.DescriptorEmptyJSON
	if err := pushBytes(ctx, dst, m.Config, m.Config.Data); err != nil {
		return ocispec.Descriptor{}, err
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("encode manifest: %w", err)
	}
	desc := content.NewDescriptorFromBytes(ocispec.MediaTypeImageManifest, raw)
	desc.ArtifactType = m.ArtifactType
	return desc, pushBytes(ctx, dst, desc, raw)
}

// ignoreExisting makes a push idempotent.
func ignoreExisting(err error) error {
	if errors.Is(err, errdef.ErrAlreadyExists) {
		return nil
	}
	return err
}
