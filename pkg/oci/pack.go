package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
)

// PackInput is what goes into an artifact. Exactly one of Dir, Root and Archive
// is set.
type PackInput struct {
	// Kind becomes the manifest's artifactType.
	Kind Kind
	// Dir is the directory to pack.
	Dir string
	// Root is the directory to pack, open already: for one that somebody else may
	// write to.
	Root *os.Root
	// Archive is a tar.gz stream, treated as hostile. It is unpacked within
	// Limits and packed again, so an archive and the directory that it was
	// made of become the same artifact.
	Archive io.Reader
	// Annotations of the manifest; [AnnotationTitle] also names the layer.
	// They are part of the digest: leave out what changes from build to build.
	Annotations map[string]string
	// Exclude leaves out a file or a directory with all below it, by its
	// slash-separated path in the tree. What is called .git is always left
	// out: it differs between checkouts of the same commit.
	Exclude func(path string) bool
	// Limits of Archive; zero fields mean the defaults.
	Limits Limits
	// TempDir holds the packed layer (and the unpacked Archive) meanwhile;
	// "" means the system's.
	TempDir string
}

// Pack makes an artifact of a directory or an archive and pushes it to dst, a
// [*Layout] or any oras target. It is deterministic and may be repeated. In a
// layout the artifact is listed by its digest; tag it to give it a name.
func Pack(ctx context.Context, dst content.Pusher, in PackInput) (ocispec.Descriptor, error) {
	var none ocispec.Descriptor
	if !kindPattern.MatchString(string(in.Kind)) {
		return none, fmt.Errorf("pack: invalid kind %q", in.Kind)
	}
	if given := []bool{in.Dir != "", in.Root != nil, in.Archive != nil}; len(slices.DeleteFunc(given, func(set bool) bool { return !set })) != 1 {
		return none, errors.New("pack: exactly one of directory, root and archive must be given")
	}

	tmp, err := os.MkdirTemp(in.TempDir, "berth-pack-")
	if err != nil {
		return none, fmt.Errorf("pack: %w", err)
	}
	defer os.RemoveAll(tmp)

	root, dir := in.Root, in.Dir
	if in.Archive != nil {
		dir = filepath.Join(tmp, "tree")
		if err := UnpackArchive(ctx, in.Archive, dir, in.Limits); err != nil {
			return none, fmt.Errorf("pack: %w", err)
		}
	}
	if root == nil {
		if root, err = os.OpenRoot(dir); err != nil {
			return none, fmt.Errorf("pack: %w", err)
		}
		defer root.Close()
	}
	layer, err := os.CreateTemp(tmp, "layer-")
	if err != nil {
		return none, fmt.Errorf("pack: %w", err)
	}
	defer layer.Close()

	sum := digest.Canonical.Digester()
	if err := PackRoot(ctx, io.MultiWriter(layer, sum.Hash()), root, in.Exclude); err != nil {
		return none, err
	}
	size, err := layer.Seek(0, io.SeekCurrent)
	if err != nil {
		return none, fmt.Errorf("pack: %w", err)
	}
	if _, err := layer.Seek(0, io.SeekStart); err != nil {
		return none, fmt.Errorf("pack: %w", err)
	}
	desc := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayerGzip, Digest: sum.Digest(), Size: size}
	if title := in.Annotations[AnnotationTitle]; title != "" {
		desc.Annotations = map[string]string{AnnotationTitle: title}
	}
	if err := pushOnce(ctx, dst, desc, layer); err != nil {
		return none, fmt.Errorf("pack: %w", err)
	}
	return pushArtifact(ctx, dst, ocispec.Manifest{
		ArtifactType: in.Kind.ArtifactType(), Layers: []ocispec.Descriptor{desc}, Annotations: maps.Clone(in.Annotations),
	})
}

// pushOnce pushes unless dst can tell that it already has the content: a
// registry would otherwise take the whole upload again. Manifests are small, and
// pushing one also lists it.
func pushOnce(ctx context.Context, dst content.Pusher, desc ocispec.Descriptor, r io.Reader) error {
	if s, ok := dst.(content.ReadOnlyStorage); ok && !IsManifest(desc.MediaType) {
		exists, err := s.Exists(ctx, desc)
		if err != nil {
			return fmt.Errorf("look for %s: %w", desc.Digest, err)
		}
		if exists {
			return nil
		}
	}
	if err := ignoreExisting(dst.Push(ctx, desc, r)); err != nil {
		return fmt.Errorf("push %s: %w", desc.Digest, err)
	}
	return nil
}

func pushBytes(ctx context.Context, dst content.Pusher, desc ocispec.Descriptor, raw []byte) error {
	return pushOnce(ctx, dst, desc, bytes.NewReader(raw))
}
