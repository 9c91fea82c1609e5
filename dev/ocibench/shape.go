package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// shape is a form of image: how many layers of how many bytes.
type shape struct {
	name   string
	layers int
	bytes  int64 // of one
}

// What apps bring: many configuration-like layers, an image as builds make them, and
// one with a large model in it.
var shapes = []shape{
	{name: "small", layers: 200, bytes: 4 << 10},
	{name: "image", layers: 20, bytes: 5 << 20},
	{name: "large", layers: 1, bytes: 256 << 20},
}

// image is an OCI image layout with one image, tagged x.
type image struct {
	dir    string
	digest digest.Digest
	bytes  int64
}

const imageTag = "x"

// make writes an image of the shape. Its layers are real ones, since skopeo looks into
// them: a tar with one file of random bytes, in gzip that does not compress.
func (s shape) make(dir string) (image, error) {
	made := image{dir: dir}
	random := rand.NewChaCha8([32]byte{byte(s.layers)})
	put := func(mediaType string, raw []byte) (ocispec.Descriptor, error) {
		desc := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(raw), Size: int64(len(raw))}
		made.bytes += desc.Size
		file := filepath.Join(dir, "blobs", "sha256", desc.Digest.Encoded())
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return desc, err
		}
		return desc, os.WriteFile(file, raw, 0o644)
	}
	config := ocispec.Image{Platform: ocispec.Platform{Architecture: "amd64", OS: "linux"}, RootFS: ocispec.RootFS{Type: "layers"}}
	manifest := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest}
	for range s.layers {
		packed, plain, err := layer(random, s.bytes)
		if err != nil {
			return made, err
		}
		desc, err := put(ocispec.MediaTypeImageLayerGzip, packed)
		if err != nil {
			return made, err
		}
		manifest.Layers = append(manifest.Layers, desc)
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, plain)
	}
	putJSON := func(mediaType string, v any) (ocispec.Descriptor, error) {
		raw, err := json.Marshal(v)
		if err != nil {
			return ocispec.Descriptor{}, err
		}
		return put(mediaType, raw)
	}
	desc, err := putJSON(ocispec.MediaTypeImageConfig, config)
	if err != nil {
		return made, err
	}
	manifest.Config = desc
	if desc, err = putJSON(ocispec.MediaTypeImageManifest, manifest); err != nil {
		return made, err
	}
	made.digest = desc.Digest
	desc.Annotations = map[string]string{ocispec.AnnotationRefName: imageTag}
	index, err := json.Marshal(ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{desc},
	})
	if err != nil {
		return made, err
	}
	if err := os.WriteFile(filepath.Join(dir, ocispec.ImageIndexFile), index, 0o644); err != nil {
		return made, err
	}
	return made, os.WriteFile(filepath.Join(dir, ocispec.ImageLayoutFile), []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644)
}

func layer(random io.Reader, size int64) (packed []byte, plain digest.Digest, err error) {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.NoCompression)
	if err != nil {
		return nil, "", err
	}
	sum := digest.Canonical.Digester()
	files := tar.NewWriter(io.MultiWriter(compressed, sum.Hash()))
	if err := files.WriteHeader(&tar.Header{Name: "data", Mode: 0o644, Size: size}); err != nil {
		return nil, "", err
	}
	if _, err := io.CopyN(files, random, size); err != nil {
		return nil, "", err
	}
	if err := files.Close(); err != nil {
		return nil, "", err
	}
	if err := compressed.Close(); err != nil {
		return nil, "", err
	}
	return out.Bytes(), sum.Digest(), nil
}
