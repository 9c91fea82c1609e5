package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// CorruptError names every blob of an artifact that is not what its digest
// says.
type CorruptError struct {
	Artifact digest.Digest
	Blobs    []BadBlob
}

// BadBlob is one changed or missing blob.
type BadBlob struct {
	Digest    digest.Digest // what it should be
	MediaType string
	Title     string // its name, when the manifest gives one
	Problem   string // "missing", "is sha256:… now", "has 3 bytes, not 5"
}

func (e *CorruptError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "artifact %s is corrupt", e.Artifact)
	for _, blob := range e.Blobs {
		fmt.Fprintf(&b, "; blob %s", blob.Digest)
		if blob.Title != "" {
			fmt.Fprintf(&b, " (%s)", blob.Title)
		}
		fmt.Fprintf(&b, " %s", blob.Problem)
	}
	return b.String()
}

// Verify hashes all blobs of an artifact again: its manifest, its config and
// its layers, through indexes and subjects. It returns a [*CorruptError] that
// names what differs, or ErrNotFound if the artifact is not listed at all.
func (l *Layout) Verify(ctx context.Context, dgst digest.Digest) error {
	root, err := l.Resolve(ctx, dgst.String())
	if err != nil {
		return err
	}
	corrupt := &CorruptError{Artifact: dgst}
	seen := map[digest.Digest]bool{}
	pending := []ocispec.Descriptor{root}
	for len(pending) > 0 {
		desc := pending[0]
		pending = pending[1:]
		if seen[desc.Digest] {
			continue
		}
		seen[desc.Digest] = true
		problem, err := l.check(ctx, desc)
		if err != nil {
			return fmt.Errorf("verify %s: %w", dgst, err)
		}
		if problem != "" {
			corrupt.Blobs = append(corrupt.Blobs, BadBlob{
				Digest: desc.Digest, MediaType: desc.MediaType, Problem: problem,
				Title: desc.Annotations[AnnotationTitle],
			})
			continue
		}
		children, err := successors(ctx, l, desc)
		if err != nil {
			return fmt.Errorf("verify %s: %w", dgst, err)
		}
		pending = append(pending, children...)
	}
	if len(corrupt.Blobs) > 0 {
		return corrupt
	}
	return nil
}

// BlobsOf lists all that Verify hashes of an artifact. The manifests are verified
// while they are read, the rest is not looked at.
func (l *Layout) BlobsOf(ctx context.Context, dgst digest.Digest) ([]digest.Digest, error) {
	root, err := l.Resolve(ctx, dgst.String())
	if err != nil {
		return nil, err
	}
	all, seen := []digest.Digest{root.Digest}, map[digest.Digest]bool{root.Digest: true}
	pending := []ocispec.Descriptor{root}
	for len(pending) > 0 {
		children, err := successors(ctx, l, pending[0])
		if err != nil {
			return nil, fmt.Errorf("blobs of %s: %w", dgst, err)
		}
		pending = pending[1:]
		for _, child := range children {
			if !seen[child.Digest] {
				seen[child.Digest] = true
				all, pending = append(all, child.Digest), append(pending, child)
			}
		}
	}
	return all, nil
}

// check hashes one blob and says in words what is wrong with it, or "".
func (l *Layout) check(ctx context.Context, desc ocispec.Descriptor) (problem string, err error) {
	rc, err := l.Fetch(ctx, desc)
	if errors.Is(err, ErrNotFound) {
		return "is missing", nil
	}
	if err != nil {
		return "", err
	}
	defer rc.Close()
	sum := desc.Digest.Algorithm().Digester()
	n, err := io.CopyBuffer(struct{ io.Writer }{sum.Hash()}, until(ctx, rc), make([]byte, copyBufferBytes))
	switch {
	case err != nil:
		return "", fmt.Errorf("blob %s: %w", desc.Digest, err)
	case n != desc.Size:
		return fmt.Sprintf("has %d bytes, not %d", n, desc.Size), nil
	case sum.Digest() != desc.Digest:
		return "is " + sum.Digest().String() + " now", nil
	}
	return "", nil
}

// until reads from r until the context ends.
func until(ctx context.Context, r io.Reader) io.Reader {
	return readFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	})
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }
