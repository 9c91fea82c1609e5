package image

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/errdef"
)

// A Store is an OCI layout on disk that images are written to.
type Store struct {
	dir     string
	created time.Time
	oci     *oci.Store
}

// A Layer is one that is in a store.
type Layer struct {
	Descriptor ocispec.Descriptor
	DiffID     digest.Digest // of the tar stream before compression
}

// Create makes an empty layout in a folder that is not there yet. Everything in
// it is of one time.
func Create(dir string, created time.Time) (*Store, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	store, err := oci.New(dir)
	if err != nil {
		return nil, err
	}
	return &Store{dir: dir, created: created, oci: store}, nil
}

// Layer writes a tree as a compressed layer.
func (s *Store) Layer(ctx context.Context, tree Tree) (Layer, error) {
	file, err := os.CreateTemp(s.dir, ".layer-*")
	if err != nil {
		return Layer{}, err
	}
	defer func() {
		_ = file.Close()
		_ = os.Remove(file.Name())
	}()
	packed, plain := digest.Canonical.Digester(), digest.Canonical.Digester()
	// Without a name and a time in its header.
	zipped := gzip.NewWriter(io.MultiWriter(file, packed.Hash()))
	if err := tree.write(io.MultiWriter(zipped, plain.Hash()), s.created); err != nil {
		return Layer{}, err
	}
	if err := zipped.Close(); err != nil {
		return Layer{}, err
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return Layer{}, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return Layer{}, err
	}
	desc := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayerGzip, Digest: packed.Digest(), Size: size}
	return Layer{desc, plain.Digest()}, s.push(ctx, desc, file)
}

// A Config is how one image runs, and what it says about itself.
type Config struct {
	Arch   string
	Entry  []string
	User   string
	Labels map[string]string // also the annotations of its manifest
}

// SearchPath is the PATH in an image, as in an environment.
const SearchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Image writes an image of layers.
func (s *Store) Image(ctx context.Context, c Config, layers []Layer) (ocispec.Descriptor, error) {
	platform := ocispec.Platform{OS: "linux", Architecture: c.Arch}
	config := ocispec.Image{
		Created: &s.created, Platform: platform,
		Config: ocispec.ImageConfig{User: c.User, Entrypoint: c.Entry, Env: []string{SearchPath}, WorkingDir: "/", Labels: c.Labels},
		RootFS: ocispec.RootFS{Type: "layers"},
	}
	manifest := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Annotations: c.Labels,
	}
	for _, layer := range layers {
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, layer.DiffID)
		config.History = append(config.History, ocispec.History{Created: &s.created})
		manifest.Layers = append(manifest.Layers, layer.Descriptor)
	}
	var err error
	if manifest.Config, err = s.pushJSON(ctx, ocispec.MediaTypeImageConfig, config); err != nil {
		return ocispec.Descriptor{}, err
	}
	desc, err := s.pushJSON(ctx, manifest.MediaType, manifest)
	desc.Platform = &platform
	return desc, err
}

// Attach writes a document about an image: a manifest whose subject it is.
func (s *Store) Attach(ctx context.Context, subject ocispec.Descriptor, mediaType string, document []byte) error {
	blob := blobOf(mediaType, document)
	if err := s.push(ctx, blob, bytes.NewReader(document)); err != nil {
		return err
	}
	empty := ocispec.DescriptorEmptyJSON
	if err := s.push(ctx, empty, bytes.NewReader(empty.Data)); err != nil {
		return err
	}
	subject.Platform = nil
	_, err := s.pushJSON(ctx, ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: mediaType,
		Config: empty, Layers: []ocispec.Descriptor{blob}, Subject: &subject,
		Annotations: map[string]string{ocispec.AnnotationCreated: s.created.UTC().Format(time.RFC3339)},
	})
	return err
}

// Index writes the list of images that are one image for several architectures,
// under a tag, and ends the layout.
func (s *Store) Index(ctx context.Context, tag string, images []ocispec.Descriptor, annotations map[string]string) (ocispec.Descriptor, error) {
	desc, err := s.pushJSON(ctx, ocispec.MediaTypeImageIndex, ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex,
		Manifests: images, Annotations: annotations,
	})
	if err != nil {
		return desc, err
	}
	if err := s.oci.Tag(ctx, desc, tag); err != nil {
		return desc, err
	}
	// Where the library put what it had not finished.
	if err := os.Remove(filepath.Join(s.dir, "ingest")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return desc, err
	}
	return desc, s.sortIndex()
}

func (s *Store) push(ctx context.Context, desc ocispec.Descriptor, r io.Reader) error {
	desc.Data = nil
	if err := s.oci.Push(ctx, desc, r); err != nil && !errors.Is(err, errdef.ErrAlreadyExists) {
		return fmt.Errorf("write %s: %w", desc.Digest, err)
	}
	return nil
}

func (s *Store) pushJSON(ctx context.Context, mediaType string, value any) (ocispec.Descriptor, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	desc := blobOf(mediaType, raw)
	return desc, s.push(ctx, desc, bytes.NewReader(raw))
}

func blobOf(mediaType string, raw []byte) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(raw), Size: int64(len(raw))}
}

// sortIndex makes index.json depend on what the layout holds alone: the library
// writes it in the order of a Go map.
func (s *Store) sortIndex() error {
	file := filepath.Join(s.dir, ocispec.ImageIndexFile)
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var index ocispec.Index
	if err := json.Unmarshal(raw, &index); err != nil {
		return err
	}
	slices.SortFunc(index.Manifests, func(a, b ocispec.Descriptor) int { return cmp.Compare(a.Digest, b.Digest) })
	if raw, err = json.Marshal(index); err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o644)
}
