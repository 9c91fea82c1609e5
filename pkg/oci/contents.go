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
	// Refers are the parts that are only reached through a subject: the artifact says
	// something about them, and has nothing of them.
	Refers map[digest.Digest]bool
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
	c := Contents{Root: root, Parts: map[digest.Digest]ocispec.Descriptor{}, Refers: map[digest.Digest]bool{}}
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
	has, err := g.has(root)
	for part := range c.Parts {
		if !has[part] {
			c.Refers[part] = true
		}
	}
	return c, err
}

// has are the parts below a manifest without those of its subjects.
func (g *graph) has(root ocispec.Descriptor) (map[digest.Digest]bool, error) {
	has := map[digest.Digest]bool{root.Digest: true}
	for i := len(g.manifests) - 1; i >= 0; i-- { // what refers to another is behind that
		m := g.manifests[i]
		if !has[m.desc.Digest] {
			continue
		}
		all, err := references(m.desc, m.raw)
		if err != nil {
			return nil, err
		}
		var said struct {
			Subject *json.RawMessage `json:"subject"`
		}
		if err := json.Unmarshal(m.raw, &said); err != nil {
			return nil, fmt.Errorf("manifest %s: %w", m.desc.Digest, err)
		}
		if said.Subject != nil {
			all = all[1:] // the subject comes first
		}
		for _, part := range all {
			has[part.Digest] = true
		}
	}
	return has, nil
}
