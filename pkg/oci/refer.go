package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
)

// Referrer is something that is said of an artifact: a signature, an SBOM, provenance.
type Referrer struct {
	// Type is that of the manifest and of its one layer.
	Type        string
	Data        []byte
	Annotations map[string]string
}

// Refer pushes a referrer of an artifact of the repository and returns the digest of its
// manifest. The same again changes nothing.
func (r Remote) Refer(ctx context.Context, subject digest.Digest, in Referrer) (digest.Digest, error) {
	repo, err := r.open()
	if err != nil {
		return "", err
	}
	of, err := repo.Resolve(ctx, subject.String())
	if err != nil {
		return "", fmt.Errorf("refer to %s of %s: %w", subject, r, err)
	}
	of = ocispec.Descriptor{MediaType: of.MediaType, Digest: of.Digest, Size: of.Size}
	layer := content.NewDescriptorFromBytes(in.Type, in.Data)
	if err := pushOnce(ctx, repo, layer, bytes.NewReader(in.Data)); err != nil {
		return "", err
	}
	made, err := pushArtifact(ctx, repo, ocispec.Manifest{
		ArtifactType: in.Type, Layers: []ocispec.Descriptor{layer}, Subject: &of, Annotations: in.Annotations,
	})
	if err != nil {
		return "", fmt.Errorf("refer to %s of %s: %w", subject, r, err)
	}
	return made.Digest, nil
}

// Said is a referrer with one layer, read.
type Said struct {
	Subject digest.Digest
	Data    []byte
}

// ReadStatements reads what an image layout of somebody else says of an artifact, or of its
// platforms: referrers of a type that its index lists. One that is about something else is an
// error.
func ReadStatements(ctx context.Context, src *os.Root, artifact digest.Digest, artifactType string) ([]Said, error) {
	f := folder{src}
	desc, err := f.resolve(artifact)
	if err != nil {
		return nil, err
	}
	raw, err := fetchManifest(ctx, f, desc)
	if err != nil {
		return nil, err
	}
	known := map[digest.Digest]bool{artifact: true}
	var parts struct {
		Manifests []ocispec.Descriptor `json:"manifests"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, err
	}
	for _, p := range parts.Manifests {
		known[p.Digest] = true
	}
	entries, err := f.entries()
	if err != nil {
		return nil, err
	}
	var all []Said
	for _, entry := range entries {
		if entry.Digest == artifact {
			continue
		}
		m, err := readManifest(ctx, f, plain(entry))
		if err != nil {
			return nil, err
		}
		if m.ArtifactType != artifactType || m.Subject == nil || len(m.Layers) != 1 {
			continue
		}
		if !known[m.Subject.Digest] {
			return nil, fmt.Errorf("%s is about %s, which is no part of %s", entry.Digest, m.Subject.Digest, artifact)
		}
		if m.Layers[0].Size < 0 || m.Layers[0].Size > MaxBlobBytes {
			return nil, fmt.Errorf("%s has %d bytes, at most %d are read", entry.Digest, m.Layers[0].Size, MaxBlobBytes)
		}
		data, err := content.FetchAll(ctx, f, m.Layers[0])
		if err != nil {
			return nil, err
		}
		all = append(all, Said{Subject: m.Subject.Digest, Data: data})
	}
	return all, nil
}

// ReadReferrer reads a referrer with one layer by the digest of its manifest. What it says of
// its subject is not compared with anything.
func (r Remote) ReadReferrer(ctx context.Context, dgst digest.Digest, limit int64) (Said, error) {
	repo, err := r.open()
	if err != nil {
		return Said{}, err
	}
	desc, err := repo.Resolve(ctx, dgst.String())
	if err != nil {
		return Said{}, err
	}
	m, err := readManifest(ctx, repo, plain(desc))
	if err != nil {
		return Said{}, err
	}
	if m.Subject == nil || len(m.Layers) != 1 || m.Layers[0].Size < 0 || m.Layers[0].Size > limit {
		return Said{}, fmt.Errorf("%s of %s is no referrer with one layer of at most %d bytes", dgst, r, limit)
	}
	data, err := content.FetchAll(ctx, repo, m.Layers[0])
	return Said{Subject: m.Subject.Digest, Data: data}, err
}
