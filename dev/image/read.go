package image

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"
)

// Open opens a layout for Images and Contents, and finds the index with the one
// tag that it has.
func Open(ctx context.Context, layout string) (*oci.ReadOnlyStore, ocispec.Descriptor, error) {
	store, err := oci.NewFromFS(ctx, os.DirFS(layout))
	if err != nil {
		return nil, ocispec.Descriptor{}, fmt.Errorf("%s: %w", layout, err)
	}
	var tag string
	if err := store.Tags(ctx, "", func(tags []string) error {
		if len(tags) != 1 {
			return fmt.Errorf("%s has %d tags, want one", layout, len(tags))
		}
		tag = tags[0]
		return nil
	}); err != nil {
		return nil, ocispec.Descriptor{}, err
	}
	index, err := store.Resolve(ctx, tag)
	return store, index, err
}

// Images returns the images of an index.
func Images(ctx context.Context, from content.Fetcher, index ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	var list ocispec.Index
	err := fetchJSON(ctx, from, index, &list)
	return list.Manifests, err
}

// Contents calls each for all that an image holds, layer by layer, with its path
// without a leading slash. The reader is good until each returns.
func Contents(ctx context.Context, from content.Fetcher, image ocispec.Descriptor, each func(*tar.Header, io.Reader) error) error {
	var manifest ocispec.Manifest
	if err := fetchJSON(ctx, from, image, &manifest); err != nil {
		return err
	}
	for _, layer := range manifest.Layers {
		if err := layerContents(ctx, from, layer, each); err != nil {
			return err
		}
	}
	return nil
}

func layerContents(ctx context.Context, from content.Fetcher, layer ocispec.Descriptor, each func(*tar.Header, io.Reader) error) error {
	blob, err := from.Fetch(ctx, layer)
	if err != nil {
		return err
	}
	defer func() { _ = blob.Close() }()
	plain, err := gzip.NewReader(blob)
	if err != nil {
		return err
	}
	for in := tar.NewReader(plain); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		header.Name = strings.TrimPrefix(path.Clean("/"+header.Name), "/")
		if err := each(header, in); err != nil {
			return err
		}
	}
}

func fetchJSON(ctx context.Context, from content.Fetcher, desc ocispec.Descriptor, out any) error {
	raw, err := content.FetchAll(ctx, from, desc)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, out)
}
