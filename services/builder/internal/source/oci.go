package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/oci"
)

const (
	// maxOCIBytes bounds an artifact as it is sent, and what it unpacks to: a plugin
	// may have 512 MiB.
	maxOCIBytes = 512 << 20
	maxOCIFiles = 20_000

	// ociTimeout is for one artifact.
	ociTimeout = 5 * time.Minute
)

func (s Source) checkOCI() error {
	if _, err := oci.ImageRemote(s.Repo); err != nil {
		return fmt.Errorf("%q is not the address of an artifact: write host and path", s.Repo)
	}
	if !tagForm.MatchString(s.Ref) && !digestForm.MatchString(s.Ref) {
		return fmt.Errorf("%q is neither the tag nor the digest of an artifact", s.Ref)
	}
	return nil
}

// what a source of a registry is called.
func (s Source) what() string {
	if s.Kind == KindOCI {
		return "plugin"
	}
	return "image"
}

// key is the one of the app folder that names a source of a registry.
func (s Source) key() Key {
	if s.Kind == KindOCI {
		return KeyOCI
	}
	return KeyImage
}

// at is the tag or the digest as it stands behind a name.
func (s Source) at() string {
	if digestForm.MatchString(s.Ref) {
		return "@" + s.Ref
	}
	return ":" + s.Ref
}

// Fetch unpacks the artifact with a digest that Resolve found into the directory
// dest, which it replaces. Only files and directories in layers of tar.gz are taken.
// Its errors are as Resolve's.
func (r *Resolver) Fetch(ctx context.Context, s Source, dgst, dest string) error {
	remote, _, err := r.Image(s)
	if err != nil {
		return err
	}
	want, err := digest.Parse(dgst)
	if err != nil {
		return refuse("%q is no resolved plugin", dgst)
	}
	limited, cancel := context.WithTimeout(ctx, ociTimeout)
	defer cancel()
	err = fetchOCI(limited, remote, want, dest)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		err = limited.Err()
	}
	s.Ref = dgst
	return r.explainImage(err, s)
}

func fetchOCI(ctx context.Context, remote oci.Remote, want digest.Digest, dest string) error {
	m, err := oci.ReadManifest(ctx, remote, want.String())
	if err != nil {
		return err
	}
	size := m.Config.Size
	for _, layer := range m.Layers {
		if layer.MediaType != ocispec.MediaTypeImageLayerGzip {
			return about(KeyOCI, "%s@%s is no plugin: it has a layer of type %.100q, and only %q is possible", remote, want, layer.MediaType, ocispec.MediaTypeImageLayerGzip)
		}
		if layer.Size < 0 || layer.Size > maxOCIBytes {
			return tooLarge(remote, want)
		}
		size += layer.Size
	}
	switch {
	case len(m.Layers) == 0:
		return about(KeyOCI, "%s@%s is no plugin: it has no layers", remote, want)
	case size < 0 || size > maxOCIBytes:
		return tooLarge(remote, want)
	}
	temp, err := os.MkdirTemp(filepath.Dir(dest), "oci-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	layout, err := oci.Open(temp)
	if err != nil {
		return err
	}
	if err := remote.Pull(ctx, want, layout, oci.TransferOptions{}); err != nil {
		return err
	}
	if err := os.RemoveAll(dest); err != nil {
		return err
	}
	err = layout.Unpack(ctx, want, dest, oci.Limits{MaxBytes: maxOCIBytes, MaxEntries: maxOCIFiles})
	if unsafe := (*os.PathError)(nil); err != nil && ctx.Err() == nil && !errors.As(err, &unsafe) {
		return about(KeyOCI, "%s@%s cannot be unpacked: %s", remote, want, err)
	}
	return err
}

func tooLarge(remote oci.Remote, want digest.Digest) *Error {
	return about(KeyOCI, "%s@%s is larger than %d MiB", remote, want, maxOCIBytes>>20)
}
