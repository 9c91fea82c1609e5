package oci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"
)

// Limits bound what an archive may become. Zero fields mean the defaults.
type Limits struct {
	MaxBytes     int64 // all files together, unpacked; default 1 GiB
	MaxFileBytes int64 // one file; default 512 MiB
	MaxEntries   int   // files, directories and symlinks; default 100,000
	// MaxRatio is how many times larger than its archive a tree may be, once
	// it is past 16 MiB; default 100. Source code has about 5, a bomb 1,000.
	MaxRatio int64
}

const (
	defaultMaxBytes     = 1 << 30
	defaultMaxFileBytes = 512 << 20
	defaultMaxEntries   = 100_000
	defaultMaxRatio     = 100

	ratioFreeBytes = 16 << 20 // small repetitive trees compress very well
)

func (l Limits) withDefaults() Limits {
	return Limits{
		MaxBytes:     cmp.Or(l.MaxBytes, defaultMaxBytes),
		MaxFileBytes: cmp.Or(l.MaxFileBytes, defaultMaxFileBytes),
		MaxEntries:   cmp.Or(l.MaxEntries, defaultMaxEntries),
		MaxRatio:     cmp.Or(l.MaxRatio, defaultMaxRatio),
	}
}

// ErrUnsafeArchive is wrapped by the errors of archives that would leave their
// directory, hold more than files, directories and symlinks, or pass a limit.
var ErrUnsafeArchive = errors.New("unsafe archive")

// Unpack extracts the tar.gz layers of an artifact, in order, to dir, which
// must be missing or empty. The bytes are hashed as they are read; dir appears
// whole, after all of them were verified, or not at all.
//
// Archives are hostile: no absolute path, "..", device, hard link or symlink
// that could lead out, nothing below a symlink, no path twice, and only so much
// of everything. Owners and special mode bits are not restored.
func (l *Layout) Unpack(ctx context.Context, dgst digest.Digest, dir string, limits Limits) error {
	a, err := Inspect(ctx, l, dgst)
	if err != nil {
		return err
	}
	if len(a.Layers) == 0 {
		return fmt.Errorf("unpack %s: no layers", dgst)
	}
	err = stage(dir, func(root *os.Root) error {
		x := newExtractor(root, limits)
		for _, layer := range a.Layers {
			if err := extractLayer(ctx, l, layer, x); err != nil {
				return err
			}
		}
		return x.finish()
	})
	if err != nil {
		return fmt.Errorf("unpack %s: %w", dgst, err)
	}
	return nil
}

func extractLayer(ctx context.Context, l *Layout, layer ocispec.Descriptor, x *extractor) error {
	if layer.MediaType != ocispec.MediaTypeImageLayerGzip {
		return fmt.Errorf("layer %s is %q, not a tar.gz tree", layer.Digest, layer.MediaType)
	}
	rc, err := l.Fetch(ctx, layer)
	if err != nil {
		return err
	}
	defer rc.Close()
	sum := layer.Digest.Algorithm().Digester()
	r := io.TeeReader(until(ctx, rc), sum.Hash())
	extractErr := x.extract(r)
	if _, err := io.Copy(io.Discard, r); err != nil {
		return errors.Join(extractErr, fmt.Errorf("layer %s: %w", layer.Digest, err))
	}
	if sum.Digest() != layer.Digest { // explains whatever extract stumbled over
		return &CorruptError{Artifact: layer.Digest, Blobs: []BadBlob{{
			Digest: layer.Digest, MediaType: layer.MediaType, Title: layer.Annotations[AnnotationTitle],
			Problem: "is " + sum.Digest().String() + " now",
		}}}
	}
	return extractErr
}

// UnpackArchive extracts a tar.gz stream that is in no registry, as strictly as
// Layout.Unpack does: dir must be missing or empty, and appears whole or not at all.
func UnpackArchive(ctx context.Context, r io.Reader, dir string, limits Limits) error {
	return stage(dir, func(root *os.Root) error {
		x := newExtractor(root, limits)
		if err := x.extract(until(ctx, r)); err != nil {
			return err
		}
		return x.finish()
	})
}

// stage fills a new directory next to dir and renames it to dir if that went
// well.
func stage(dir string, fill func(*os.Root) error) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty", dir)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	staging, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(staging) // gone by then if all went well
	root, err := os.OpenRoot(staging)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := fill(root); err != nil {
		return err
	}
	if err := os.Chmod(staging, modeDir); err != nil {
		return err
	}
	return unix.Rename(staging, dir) // onto an empty directory too, which os.Rename refuses
}
