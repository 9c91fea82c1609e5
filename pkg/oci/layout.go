package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
)

// Layout is an OCI image layout directory, as other tools read and write it:
//
//	oci-layout, index.json   what artifacts are here, some with tags
//	blobs/<algorithm>/<hex>  contents by digest, never changed once named
//	ingest/<hex>.partial     contents on their way in; a later push resumes them
//	.lock, .index.lock       flocks: see begin and editIndex
//
// It is safe for concurrent use by goroutines and by processes on one machine.
// A crash leaves at most partial contents, which are resumed or collected. It
// implements oras.Target.
type Layout struct {
	dir string
}

// Open opens the layout at dir, made (private to its user) when missing.
func Open(dir string) (*Layout, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open layout: %w", err)
	}
	for _, sub := range []string{"blobs/sha256", "ingest"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(sub)), 0o700); err != nil {
			return nil, fmt.Errorf("open layout: %w", err)
		}
	}
	l := &Layout{dir: dir}
	marker := filepath.Join(dir, ocispec.ImageLayoutFile)
	const version = `{"imageLayoutVersion":"` + ocispec.ImageLayoutVersion + `"}`
	// A power cut soon after it was written leaves it empty or with zeros.
	if raw, err := os.ReadFile(marker); errors.Is(err, fs.ErrNotExist) || err == nil && len(bytes.Trim(raw, "\x00")) == 0 {
		if err := replaceFile(marker, []byte(version)); err != nil {
			return nil, fmt.Errorf("open layout: %w", err)
		}
	}
	if _, err := l.readIndex(); err != nil {
		return nil, fmt.Errorf("open layout: %w", err)
	}
	return l, nil
}

// Dir is the absolute path of the layout.
func (l *Layout) Dir() string { return l.dir }

// Has tells whether the content with this digest, manifest or layer, is here.
// It does not hash it: see [Layout.Verify].
func (l *Layout) Has(dgst digest.Digest) bool {
	file, err := l.blobPath(dgst)
	if err != nil {
		return false
	}
	_, err = os.Stat(file)
	return err == nil
}

// Exists is Has for oras; a blob of another size does not exist.
func (l *Layout) Exists(_ context.Context, desc ocispec.Descriptor) (bool, error) {
	file, err := l.blobPath(desc.Digest)
	if err != nil {
		return false, err
	}
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.Size() == desc.Size, err
}

// Fetch opens a blob. The reader does not verify it; content.FetchAll does, and
// so do Verify, GetBlob and Unpack.
func (l *Layout) Fetch(_ context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
	f, err := l.Open(desc.Digest)
	if err != nil {
		return nil, err // not a nil *os.File in an interface
	}
	return f, nil
}

// Open opens the file of a blob, which is read only. What is in it is not
// verified.
func (l *Layout) Open(dgst digest.Digest) (*os.File, error) {
	file, err := l.blobPath(dgst)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("blob %s: %w", dgst, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Push stores content under its digest, which is checked. Content that is
// here already gives errdef.ErrAlreadyExists, after which oras carries on. An
// interrupted push leaves what it got; when r is an io.Seeker, as blobs from a
// registry are, the next push of the same digest goes on from there.
//
// A pushed manifest is also listed in the index, so that it is found by digest;
// one that is here already too, since who pushed it may not have come to that.
func (l *Layout) Push(ctx context.Context, desc ocispec.Descriptor, r io.Reader) error {
	w, err := l.begin(ctx)
	if err != nil {
		return err
	}
	defer w.end()
	pushed := w.Push(ctx, desc, r)
	if !IsManifest(desc.MediaType) || ignoreExisting(pushed) != nil {
		return pushed
	}
	if err := l.list(ctx, desc); err != nil {
		return err
	}
	return pushed
}

// Resolve gives the descriptor of an artifact by its tag or its digest.
func (l *Layout) Resolve(_ context.Context, reference string) (ocispec.Descriptor, error) {
	index, err := l.readIndex()
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	for _, desc := range index.Manifests {
		if desc.Digest.String() == reference || desc.Annotations[ocispec.AnnotationRefName] == reference {
			return plain(desc), nil
		}
	}
	return ocispec.Descriptor{}, fmt.Errorf("artifact %q in %s: %w", reference, l.dir, ErrNotFound)
}

// Tag names an artifact that is in the layout; a tag that named another one is
// moved. Tagged artifacts are kept by GC.
func (l *Layout) Tag(ctx context.Context, desc ocispec.Descriptor, tag string) error {
	if _, err := digest.Parse(tag); err == nil || tag == "" {
		return fmt.Errorf("tag %q: %w", tag, errdef.ErrInvalidReference)
	}
	w, err := l.begin(ctx)
	if err != nil {
		return err
	}
	defer w.end()
	if exists, err := l.Exists(ctx, desc); err != nil || !exists {
		return errors.Join(err, fmt.Errorf("tag %q: artifact %s: %w", tag, desc.Digest, ErrNotFound))
	}
	return l.editIndex(ctx, func(entries []ocispec.Descriptor) []ocispec.Descriptor {
		return withTag(entries, desc, tag)
	})
}

// Untag removes a tag; the artifact stays, listed by digest, until GC. A tag
// that is not there is no error.
func (l *Layout) Untag(ctx context.Context, tag string) error {
	return l.editIndex(ctx, func(entries []ocispec.Descriptor) []ocispec.Descriptor {
		return withoutTag(entries, tag)
	})
}

// Artifacts lists what the index lists, with tags as ref.name annotations.
func (l *Layout) Artifacts() ([]ocispec.Descriptor, error) {
	index, err := l.readIndex()
	return index.Manifests, err
}

func (l *Layout) list(ctx context.Context, desc ocispec.Descriptor) error {
	return l.editIndex(ctx, func(entries []ocispec.Descriptor) []ocispec.Descriptor {
		return withEntry(entries, desc)
	})
}

// blobPath checks the digest, which may come from anybody, before it becomes a
// path.
func (l *Layout) blobPath(dgst digest.Digest) (string, error) {
	if err := dgst.Validate(); err != nil {
		return "", fmt.Errorf("digest %q: %w", dgst, errdef.ErrInvalidDigest)
	}
	return filepath.Join(l.dir, "blobs", dgst.Algorithm().String(), dgst.Encoded()), nil
}
