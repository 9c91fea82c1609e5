package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
)

// Bounds of what is read of the referrers of an artifact: anyone who may push to the source
// can add to them.
const (
	maxHanging      = 200
	maxHangingBytes = 4 << 20
)

// Hanging is a referrer of an artifact, read. What is too large to be a signature has no data.
type Hanging struct {
	Digest digest.Digest
	Type   string // of the artifact
	Layers []HangingLayer
}

// HangingLayer is one layer of a referrer.
type HangingLayer struct {
	MediaType   string
	Annotations map[string]string
	Data        []byte
}

// hangingSource is a place with an artifact and what refers to it.
type hangingSource interface {
	content.Fetcher
	referring
}

// HangingIn reads what an image layout has of an artifact: its manifest, and what refers to
// it. Nobody has looked at what that says.
func HangingIn(ctx context.Context, layout *os.Root, artifact digest.Digest) (manifest []byte, hung []Hanging, err error) {
	f := folder{layout}
	desc, err := f.resolve(artifact)
	if err != nil {
		return nil, nil, err
	}
	return readHanging(ctx, f, desc)
}

// HangingOn is what refers to one manifest.
type HangingOn struct {
	Subject digest.Digest
	Hung    []Hanging
}

// HangingOnPartsIn reads what an image layout has of the manifests that an index lists, which
// are an image's platforms, in its order. An artifact that is no index has none.
func HangingOnPartsIn(ctx context.Context, layout *os.Root, artifact digest.Digest) ([]HangingOn, error) {
	f := folder{layout}
	desc, err := f.resolve(artifact)
	if err != nil {
		return nil, err
	}
	return readHangingOnParts(ctx, f, desc)
}

// HangingOnParts reads what a repository has of the manifests that an index lists, as
// HangingOnPartsIn does.
func (r Remote) HangingOnParts(ctx context.Context, artifact digest.Digest) ([]HangingOn, error) {
	repo, err := r.open()
	if err != nil {
		return nil, err
	}
	desc, err := repo.Resolve(ctx, artifact.String())
	if err != nil {
		return nil, err
	}
	return readHangingOnParts(ctx, registryReferrers{repo}, plain(desc))
}

func readHangingOnParts(ctx context.Context, src hangingSource, desc ocispec.Descriptor) ([]HangingOn, error) {
	raw, err := fetchManifest(ctx, src, desc)
	if err != nil {
		return nil, err
	}
	var index struct {
		Manifests []ocispec.Descriptor `json:"manifests"`
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", desc.Digest, err)
	}
	var all []HangingOn
	for _, part := range index.Manifests[:min(len(index.Manifests), maxHanging)] {
		_, hung, err := readHanging(ctx, src, plain(part))
		if err != nil {
			return nil, err
		}
		if len(hung) > 0 {
			all = append(all, HangingOn{Subject: part.Digest, Hung: hung})
		}
	}
	return all, nil
}

// Hanging reads what a repository has of an artifact, as HangingIn does, and signatures that
// are only a tag.
func (r Remote) Hanging(ctx context.Context, artifact digest.Digest) (manifest []byte, hung []Hanging, err error) {
	repo, err := r.open()
	if err != nil {
		return nil, nil, err
	}
	desc, err := repo.Resolve(ctx, artifact.String())
	if err != nil {
		return nil, nil, err
	}
	manifest, hung, err = readHanging(ctx, registryReferrers{repo}, plain(desc))
	if err != nil {
		return nil, nil, err
	}
	m, err := ReadManifest(ctx, r, signatureTag(artifact))
	if errors.Is(err, ErrNotFound) {
		return manifest, hung, nil
	}
	if err != nil {
		return nil, nil, err
	}
	byTag := Hanging{Type: cosignSignature}
	for _, layer := range m.Layers[:min(len(m.Layers), maxHanging)] {
		if layer.Size < 0 || layer.Size > maxHangingBytes {
			continue
		}
		data, err := content.FetchAll(ctx, repo, layer)
		if err != nil {
			return nil, nil, err
		}
		byTag.Layers = append(byTag.Layers, HangingLayer{MediaType: layer.MediaType, Annotations: layer.Annotations, Data: data})
	}
	return manifest, append(hung, byTag), nil
}

// signatureTag is where cosign 1 and 2 keep the signatures of an image.
func signatureTag(image digest.Digest) string {
	return image.Algorithm().String() + "-" + image.Encoded() + ".sig"
}

func readHanging(ctx context.Context, src hangingSource, desc ocispec.Descriptor) (manifest []byte, hung []Hanging, err error) {
	if manifest, err = fetchManifest(ctx, src, desc); err != nil {
		return nil, nil, err
	}
	found, err := src.referrers(ctx, desc)
	if err != nil {
		return nil, nil, err
	}
	for _, one := range found {
		if len(hung) == maxHanging {
			break
		}
		m, err := readManifest(ctx, src, plain(one))
		if err != nil || m.Subject == nil || m.Subject.Digest != desc.Digest || len(m.Layers) > maxHanging {
			if ctx.Err() != nil {
				return nil, nil, ctx.Err()
			}
			continue // somebody's, and no signature that can be read
		}
		h := Hanging{Digest: one.Digest, Type: m.ArtifactType}
		for _, layer := range m.Layers {
			part := HangingLayer{MediaType: layer.MediaType, Annotations: layer.Annotations}
			if layer.Size >= 0 && layer.Size <= maxHangingBytes {
				part.Data, err = content.FetchAll(ctx, src, layer)
			}
			if ctx.Err() != nil {
				return nil, nil, ctx.Err()
			}
			if err == nil {
				h.Layers = append(h.Layers, part)
			}
		}
		hung = append(hung, h)
	}
	return manifest, hung, nil
}

// cosignSignature is the artifact type of a signature of cosign that is a referrer of its
// image, as cosign itself writes it with COSIGN_EXPERIMENTAL=1 and OCI 1.1.
const cosignSignature = "application/vnd.dev.cosign.artifact.sig.v1+json"

// AdoptInto brings the signatures that are only a tag, sha256-….sig as cosign 1 and 2 write
// it, to where the image was copied: there they refer to it, so that they go wherever it
// goes. An image without that tag has none.
func (r Remote) AdoptInto(ctx context.Context, image digest.Digest, dst *Layout) error {
	desc, err := dst.Resolve(ctx, image.String())
	if err != nil {
		return err
	}
	return r.adopt(ctx, desc, dst)
}

// AdoptBy is AdoptInto for a copy in another repository.
func (r Remote) AdoptBy(ctx context.Context, image digest.Digest, dst Remote) error {
	repo, err := dst.open()
	if err != nil {
		return err
	}
	desc, err := repo.Resolve(ctx, image.String())
	if err != nil {
		return err
	}
	return r.adopt(ctx, desc, repo)
}

func (r Remote) adopt(ctx context.Context, image ocispec.Descriptor, dst content.Pusher) error {
	m, err := ReadManifest(ctx, r, signatureTag(image.Digest))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("signatures of %s: %w", image.Digest, err)
	}
	repo, err := r.open()
	if err != nil {
		return err
	}
	if len(m.Layers) > maxHanging {
		return fmt.Errorf("signatures of %s: there are more than %d", image.Digest, maxHanging)
	}
	for _, part := range append([]ocispec.Descriptor{m.Config}, m.Layers...) {
		if part.Size < 0 || part.Size > maxHangingBytes {
			return fmt.Errorf("signatures of %s: one has %d bytes", image.Digest, part.Size)
		}
		raw, err := content.FetchAll(ctx, repo, part)
		if err != nil {
			return fmt.Errorf("signatures of %s: %w", image.Digest, err)
		}
		if err := pushOnce(ctx, dst, part, bytes.NewReader(raw)); err != nil {
			return err
		}
	}
	m.ArtifactType = cosignSignature
	m.MediaType = ocispec.MediaTypeImageManifest
	m.Subject = &ocispec.Descriptor{MediaType: image.MediaType, Digest: image.Digest, Size: image.Size}
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return pushBytes(ctx, dst, content.NewDescriptorFromBytes(ocispec.MediaTypeImageManifest, raw), raw)
}
