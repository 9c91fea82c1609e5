package oci

import (
	"context"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
)

// MaxBlobBytes bounds what PutBlob takes and GetBlob reads into memory.
const MaxBlobBytes = 256 << 20

// mediaTypeBytes is the layer type of a blob: what is inside is the
// artifactType's matter.
const mediaTypeBytes = "application/octet-stream"

// PutBlob stores bytes, such as a sealed plan file, as an artifact with one
// opaque layer called name, and returns the digest of its manifest. The same
// arguments give the same digest. Seal first: the layout keeps what it is given.
func (l *Layout) PutBlob(ctx context.Context, artifactType, name string, data []byte) (digest.Digest, error) {
	if len(data) > MaxBlobBytes {
		return "", fmt.Errorf("put blob %q: %d bytes, at most %d allowed", name, len(data), MaxBlobBytes)
	}
	if artifactType == "" || name == "" {
		return "", errors.New("put blob: artifact type and name must be given")
	}
	desc := content.NewDescriptorFromBytes(mediaTypeBytes, data)
	desc.Annotations = map[string]string{AnnotationTitle: name}
	if err := pushBytes(ctx, l, desc, data); err != nil {
		return "", fmt.Errorf("put blob %q: %w", name, err)
	}
	manifest, err := pushArtifact(ctx, l, ocispec.Manifest{
		ArtifactType: artifactType, Layers: []ocispec.Descriptor{desc}, Annotations: desc.Annotations,
	})
	if err != nil {
		return "", fmt.Errorf("put blob %q: %w", name, err)
	}
	return manifest.Digest, nil
}

// GetBlob returns what PutBlob stored under dgst, re-hashed on the way. An
// artifact of another type is an error.
func (l *Layout) GetBlob(ctx context.Context, artifactType string, dgst digest.Digest) (name string, data []byte, err error) {
	a, err := Inspect(ctx, l, dgst)
	if err != nil {
		return "", nil, err
	}
	if a.ArtifactType != artifactType || len(a.Layers) != 1 || a.Layers[0].MediaType != mediaTypeBytes {
		return "", nil, fmt.Errorf("artifact %s is %q with %d layers, not a blob of type %q", dgst, a.ArtifactType, len(a.Layers), artifactType)
	}
	layer := a.Layers[0]
	if layer.Size < 0 || layer.Size > MaxBlobBytes {
		return "", nil, fmt.Errorf("artifact %s: %d bytes, at most %d allowed", dgst, layer.Size, MaxBlobBytes)
	}
	name = layer.Annotations[AnnotationTitle]
	if data, err = content.FetchAll(ctx, l, layer); err != nil {
		return "", nil, fmt.Errorf("artifact %s: blob %q: %w", dgst, name, err)
	}
	return name, data, nil
}
