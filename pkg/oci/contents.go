package oci

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// mediaTypeDockerConfig is that of the config of an image with Docker's types.
const mediaTypeDockerConfig = "application/vnd.docker.container.image.v1+json"

// Contents is what an artifact consists of.
type Contents struct {
	Root ocispec.Descriptor
	// Parts are its manifests, configs and layers, through indexes and subjects.
	Parts map[digest.Digest]ocispec.Descriptor
	// Image: a part of it can be run as a container.
	Image bool
	// Own: some part of it has one of Berth's kinds.
	Own bool
	// Subject is what it refers to, "" for nothing.
	Subject digest.Digest
	// Type is its artifactType, or the media type of its config.
	Type string
	// Annotations are those of its manifest.
	Annotations map[string]string
}

// ReadManifest reads a manifest or an index, verified against its digest.
func (l *Layout) ReadManifest(ctx context.Context, desc ocispec.Descriptor) ([]byte, error) {
	return fetchManifest(ctx, l, desc)
}

// ReadContents reads the manifests of an artifact, each verified against its
// digest. Blobs are not looked at.
func ReadContents(ctx context.Context, l *Layout, dgst digest.Digest) (Contents, error) {
	root, err := l.Resolve(ctx, dgst.String())
	if err != nil {
		return Contents{}, err
	}
	g, err := readGraph(ctx, l, manifest{desc: root})
	if err != nil {
		return Contents{}, err
	}
	c := Contents{Root: root, Parts: map[digest.Digest]ocispec.Descriptor{}}
	for _, blob := range g.blobs {
		c.Parts[blob.Digest] = blob
	}
	for _, m := range g.manifests {
		c.Parts[m.desc.Digest] = m.desc
		var said struct {
			ArtifactType string              `json:"artifactType"`
			Config       ocispec.Descriptor  `json:"config"`
			Subject      *ocispec.Descriptor `json:"subject"`
			Annotations  map[string]string   `json:"annotations"`
		}
		if err := json.Unmarshal(m.raw, &said); err != nil {
			return Contents{}, fmt.Errorf("manifest %s: %w", m.desc.Digest, err)
		}
		_, own := KindOf(said.ArtifactType)
		c.Own = c.Own || own
		switch said.Config.MediaType {
		case ocispec.MediaTypeImageConfig, mediaTypeDockerConfig:
			c.Image = true
		}
		if m.desc.Digest != dgst {
			continue
		}
		c.Type, c.Annotations = cmp.Or(said.ArtifactType, said.Config.MediaType), said.Annotations
		if said.Subject != nil {
			c.Subject = said.Subject.Digest
		}
	}
	return c, nil
}
