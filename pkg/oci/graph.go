package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
)

// Bounds of one artifact's graph, against graphs made to exhaust memory: a
// multi-platform image with signatures has some dozens of parts.
const (
	maxParts              = 10_000
	maxGraphManifestBytes = 64 << 20
)

// graph is an artifact by its parts, each once.
type graph struct {
	blobs     []ocispec.Descriptor
	manifests []manifest           // referred before referring
	referrers []ocispec.Descriptor // of the manifests, those that were added for that
	bytes     int64                // of all

	manifestBytes int64
	seen          map[digest.Digest]bool
}

type manifest struct {
	desc ocispec.Descriptor
	raw  []byte
}

// readGraph fetches all manifests below root, and root where its raw is nil. It
// looks at no blob.
func readGraph(ctx context.Context, src content.Fetcher, root manifest) (*graph, error) {
	g := &graph{seen: map[digest.Digest]bool{}}
	if root.raw != nil {
		src = having{src, root}
	}
	return g, g.add(ctx, src, root.desc)
}

// having is a source of which one manifest was read before.
type having struct {
	content.Fetcher
	manifest
}

// Fetch shadows that of the source.
func (h having) Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
	if desc.Digest == h.desc.Digest {
		return io.NopCloser(bytes.NewReader(h.raw)), nil
	}
	return h.Fetcher.Fetch(ctx, desc)
}

func (g *graph) add(ctx context.Context, src content.Fetcher, desc ocispec.Descriptor) error {
	if g.seen[desc.Digest] {
		return nil
	}
	g.seen[desc.Digest] = true
	if IsManifest(desc.MediaType) {
		g.manifestBytes += desc.Size
	}
	if len(g.seen) > maxParts || g.manifestBytes > maxGraphManifestBytes {
		return fmt.Errorf("artifact has more than %d parts or %d bytes of manifests", maxParts, maxGraphManifestBytes)
	}
	g.bytes += desc.Size
	if !IsManifest(desc.MediaType) {
		g.blobs = append(g.blobs, desc)
		return nil
	}
	raw, err := fetchManifest(ctx, src, desc)
	if err != nil {
		return err
	}
	children, err := references(desc, raw)
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := g.add(ctx, src, child); err != nil {
			return err
		}
	}
	g.manifests = append(g.manifests, manifest{desc, raw})
	return nil
}

// IsManifest tells whether a blob of the media type refers to others: it is the
// manifest of an artifact, or an index.
func IsManifest(mediaType string) bool {
	switch mediaType {
	case ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageIndex, mediaTypeDockerManifest, mediaTypeDockerList:
		return true
	}
	return false
}

// Images of others, mirrored for an install, may still have Docker's types.
const (
	mediaTypeDockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	mediaTypeDockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
)

// successors returns what a manifest refers to; nothing for other blobs.
func successors(ctx context.Context, src content.Fetcher, desc ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	if !IsManifest(desc.MediaType) {
		return nil, nil
	}
	raw, err := fetchManifest(ctx, src, desc)
	if err != nil {
		return nil, err
	}
	return references(desc, raw)
}

// references decodes what all manifest types have in common. A manifest whose
// own mediaType contradicts its descriptor is refused: two readers could
// understand the same bytes differently.
func references(desc ocispec.Descriptor, raw []byte) ([]ocispec.Descriptor, error) {
	var m struct {
		MediaType string               `json:"mediaType"`
		Config    *ocispec.Descriptor  `json:"config"`
		Layers    []ocispec.Descriptor `json:"layers"`
		Manifests []ocispec.Descriptor `json:"manifests"`
		Subject   *ocispec.Descriptor  `json:"subject"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", desc.Digest, err)
	}
	if m.MediaType != "" && m.MediaType != desc.MediaType {
		return nil, fmt.Errorf("manifest %s: calls itself %q, not %q", desc.Digest, m.MediaType, desc.MediaType)
	}
	var all []ocispec.Descriptor
	for _, single := range []*ocispec.Descriptor{m.Subject, m.Config} {
		if single != nil {
			all = append(all, *single)
		}
	}
	all = append(append(all, m.Layers...), m.Manifests...)
	for _, child := range all {
		if err := child.Digest.Validate(); err != nil || child.Size < 0 {
			return nil, fmt.Errorf("manifest %s: refers to digest %q of %d bytes", desc.Digest, child.Digest, child.Size)
		}
	}
	return all, nil
}
