package oci

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
)

// Layers of images as Docker calls them.
const (
	mediaTypeDockerLayer     = "application/vnd.docker.image.rootfs.diff.tar"
	mediaTypeDockerLayerGzip = mediaTypeDockerLayer + ".gzip"
)

// maxConfigBytes bounds the config of an image, which is held in memory.
const maxConfigBytes = 4 << 20

// ContainerImage is one platform of an image in a layout that somebody else wrote.
type ContainerImage struct {
	// Digest is what the layout lists: an index, or the manifest of one platform.
	Digest digest.Digest
	// Config is what the image says of how it is started.
	Config ocispec.ImageConfig

	src    folder
	layers []ocispec.Descriptor
}

// FindImage finds the image of a layout that lists exactly one, for a platform such as
// "linux/amd64". Nothing outside of src is read, and each manifest is verified against
// its digest. An image without the platform is an error that wraps ErrNotFound.
func FindImage(ctx context.Context, src *os.Root, platform string) (ContainerImage, error) {
	i := ContainerImage{src: folder{src}}
	entries, err := i.src.entries()
	if err != nil {
		return i, err
	}
	if len(entries) != 1 {
		return i, fmt.Errorf("%s lists %d artifacts, it has to be one image", ocispec.ImageIndexFile, len(entries))
	}
	desc := plain(entries[0])
	i.Digest = desc.Digest
	if desc, err = i.src.platform(ctx, desc, platform); err != nil {
		return i, err
	}
	raw, err := fetchManifest(ctx, i.src, desc)
	if err != nil {
		return i, err
	}
	var m ocispec.Manifest
	if _, err := references(desc, raw); err != nil {
		return i, err
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return i, fmt.Errorf("manifest %s: %w", desc.Digest, err)
	}
	if m.Config.MediaType != ocispec.MediaTypeImageConfig && m.Config.MediaType != mediaTypeDockerConfig {
		return i, fmt.Errorf("%s is not a container image: its config is %q", desc.Digest, m.Config.MediaType)
	}
	if m.Config.Size > maxConfigBytes {
		return i, fmt.Errorf("config of image %s: %d bytes, at most %d allowed", desc.Digest, m.Config.Size, maxConfigBytes)
	}
	if raw, err = content.FetchAll(ctx, i.src, m.Config); err != nil {
		return i, fmt.Errorf("config of image %s: %w", desc.Digest, err)
	}
	var c ocispec.Image
	if err := json.Unmarshal(raw, &c); err != nil {
		return i, fmt.Errorf("config of image %s: %w", desc.Digest, err)
	}
	if is := c.OS + "/" + c.Architecture; is != platform {
		return i, fmt.Errorf("image %s is for %s, not for %s: %w", i.Digest, is, platform, ErrNotFound)
	}
	i.Config, i.layers = c.Config, m.Layers
	return i, nil
}

// platform is the manifest for a platform in an index; a manifest is returned as it is.
func (f folder) platform(ctx context.Context, desc ocispec.Descriptor, platform string) (ocispec.Descriptor, error) {
	switch desc.MediaType {
	case ocispec.MediaTypeImageManifest, mediaTypeDockerManifest:
		return desc, nil
	case ocispec.MediaTypeImageIndex, mediaTypeDockerList:
	default:
		return desc, fmt.Errorf("%s is not a container image: it is %q", desc.Digest, desc.MediaType)
	}
	raw, err := fetchManifest(ctx, f, desc)
	if err != nil {
		return desc, err
	}
	if _, err := references(desc, raw); err != nil {
		return desc, err
	}
	var index ocispec.Index
	if err := json.Unmarshal(raw, &index); err != nil {
		return desc, fmt.Errorf("index %s: %w", desc.Digest, err)
	}
	var has []string
	for _, m := range index.Manifests {
		if m.Platform == nil || m.MediaType != ocispec.MediaTypeImageManifest && m.MediaType != mediaTypeDockerManifest {
			continue
		}
		is := m.Platform.OS + "/" + m.Platform.Architecture
		if is == platform {
			return plain(m), nil
		}
		has = append(has, is)
	}
	return desc, fmt.Errorf("image %s is for %s, not for %s: %w", desc.Digest, strings.Join(has, ", "), platform, ErrNotFound)
}

// Unpack makes the image's files in dir, which must be missing or empty, and appears
// whole or not at all. Each layer is verified against its digest.
//
// Layers are hostile: nothing is written through a symlink that leads out of dir, a
// hard link links what the image has, and only so much is unpacked. Devices and pipes
// are refused, but for what is in /dev, where nobody looks. Owners, special mode bits
// and attributes are not restored, so that nothing in an image gives rights. Symlinks
// stay as they are: code that reads dir without being confined to it must not follow one.
func (i ContainerImage) Unpack(ctx context.Context, dir string, limits Limits) error {
	err := stage(dir, func(root *os.Root) error {
		x := newExtractor(root, limits)
		for _, layer := range i.layers {
			if err := i.layer(ctx, layer, x); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("unpack image %s: %w", i.Digest, err)
	}
	return nil
}

func (i ContainerImage) layer(ctx context.Context, desc ocispec.Descriptor, x *extractor) error {
	switch desc.MediaType {
	case ocispec.MediaTypeImageLayer, ocispec.MediaTypeImageLayerGzip, mediaTypeDockerLayer, mediaTypeDockerLayerGzip:
	default:
		return fmt.Errorf("layer %s is %q: build the image with layers as tar or tar+gzip", desc.Digest, desc.MediaType)
	}
	rc, err := i.src.Fetch(ctx, desc)
	if err != nil {
		return err
	}
	defer rc.Close()
	sum := desc.Digest.Algorithm().Digester()
	r := io.TeeReader(until(ctx, rc), sum.Hash())
	l := layer{extractor: x, fresh: map[string]bool{}}
	extractErr := l.extract(r)
	if _, err := io.Copy(io.Discard, r); err != nil {
		return errors.Join(extractErr, fmt.Errorf("layer %s: %w", desc.Digest, err))
	}
	if is := sum.Digest(); is != desc.Digest {
		return fmt.Errorf("layer %s: it is %s now", desc.Digest, is)
	}
	if extractErr != nil {
		return fmt.Errorf("layer %s: %w", desc.Digest, extractErr)
	}
	return nil
}

// layer is one of an image, on top of those before it.
type layer struct {
	*extractor
	// fresh are the paths of this layer, with the directories above them.
	fresh map[string]bool
}

func (l layer) extract(r io.Reader) error {
	buffered := bufio.NewReader(&countReader{r, &l.packed})
	plain := io.Reader(buffered)
	if magic, _ := buffered.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		zr, err := gzip.NewReader(buffered)
		if err != nil {
			return fmt.Errorf("not a tar.gz archive: %w", err)
		}
		plain = zr
	}
	tr := tar.NewReader(&budgetReader{plain, l.extractor})
	for {
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		if err := l.entry(header, tr); err != nil {
			return err
		}
	}
}

// Names by which a layer removes what is below it.
const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

func (l layer) entry(header *tar.Header, content io.Reader) error {
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name := strings.TrimSuffix(inImage(header.Name), "/")
	if header.Typeflag == tar.TypeDir && (name == "" || name == ".") {
		return nil
	}
	if err := checkName(name); err != nil {
		return unsafef("%w", err)
	}
	if strings.HasPrefix(name, "dev/") {
		return nil // a room mounts devices of its own there
	}
	base := path.Base(name)
	switch {
	case base == opaque:
		return l.purge(path.Dir(name))
	case strings.HasPrefix(base, whiteout):
		gone := path.Join(path.Dir(name), strings.TrimPrefix(base, whiteout))
		if err := checkName(gone); err != nil || gone == path.Dir(name) {
			return unsafef("%s removes nothing in its directory", name)
		}
		if l.fresh[gone] {
			return nil
		}
		return l.escapes(gone, l.root.RemoveAll(gone))
	}
	if err := l.room(name, header); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return l.escapes(name, l.root.MkdirAll(name, modeDir))
	case tar.TypeReg:
		return l.write(name, header, content)
	case tar.TypeSymlink:
		return l.escapes(name, l.root.Symlink(header.Linkname, name))
	case tar.TypeLink:
		return l.hardLink(name, header.Linkname)
	default:
		return unsafef("%s: entries of type %q are not allowed", name, header.Typeflag)
	}
}

// inImage is a path from the image's root: builders write it with "./" or "/" in front.
func inImage(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, "./"), "/")
}

// room counts an entry, makes the directory that it is in, and removes what was at its
// place.
func (l layer) room(name string, header *tar.Header) error {
	if len(l.entries) >= l.limits.MaxEntries {
		return unsafef("more than %d entries", l.limits.MaxEntries)
	}
	l.entries[name] = entryFile
	for at := name; at != "."; at = path.Dir(at) {
		l.fresh[at] = true
	}
	if parent := path.Dir(name); parent != "." {
		if err := l.escapes(name, l.root.MkdirAll(parent, modeDir)); err != nil {
			return err
		}
	}
	info, err := l.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.IsDir() && header.Typeflag == tar.TypeDir:
		return nil
	case err != nil:
		return l.escapes(name, err)
	}
	return l.escapes(name, l.root.RemoveAll(name))
}

func (l layer) write(name string, header *tar.Header, content io.Reader) error {
	if header.Size > l.limits.MaxFileBytes {
		return unsafef("%s: %d bytes, at most %d allowed in a file", name, header.Size, l.limits.MaxFileBytes)
	}
	if header.Size > l.limits.MaxBytes-l.bytes {
		return unsafef("%s: the image would have more than %d bytes", name, l.limits.MaxBytes)
	}
	mode := os.FileMode(modeFile)
	if header.Mode&0o111 != 0 {
		mode = modeExecutable
	}
	f, err := l.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return l.escapes(name, err)
	}
	n, err := io.Copy(f, content)
	l.bytes += n
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func (l layer) hardLink(name, target string) error {
	target = inImage(target)
	if err := checkName(target); err != nil {
		return unsafef("%s: link to %q: %w", name, target, err)
	}
	info, err := l.root.Lstat(target)
	if err != nil || !info.Mode().IsRegular() {
		return unsafef("%s: link to %q, which is no file of the image", name, target)
	}
	return l.escapes(name, l.root.Link(target, name))
}

// purge removes what is in a directory and not of this layer.
func (l layer) purge(dir string) error {
	f, err := l.root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return l.escapes(dir, err)
	}
	all, err := f.ReadDir(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return l.escapes(dir, err)
	}
	for _, entry := range all {
		at := path.Join(dir, entry.Name())
		switch {
		case !l.fresh[at]:
			err = l.escapes(at, l.root.RemoveAll(at))
		case entry.IsDir():
			err = l.purge(at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// escapes makes of an error at an entry one of the archive: what the tree itself
// refuses is a way out of it, or goes through what is no directory.
func (l layer) escapes(name string, err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok && pathErr != nil {
		return unsafef("%s: %w", name, err)
	}
	if linkErr, ok := errors.AsType[*os.LinkError](err); ok && linkErr != nil {
		return unsafef("%s: %w", name, err)
	}
	return err
}

// CopyImage writes an artifact of a layout that somebody else wrote, with all of its
// parts, to a new layout in dir, which lists nothing else and has nothing else in it.
// dir must be missing or empty, and appears whole or not at all.
func CopyImage(ctx context.Context, src *os.Root, dgst digest.Digest, dir string) error {
	from := folder{src}
	desc, err := from.resolve(dgst)
	if err != nil {
		return err
	}
	g, err := readGraph(ctx, from, manifest{desc: desc})
	if err != nil {
		return err
	}
	index, err := json.Marshal(ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{desc}})
	if err != nil {
		return err
	}
	return stage(dir, func(root *os.Root) error {
		parts := g.blobs
		for _, m := range g.manifests {
			parts = append(parts, m.desc)
		}
		for _, part := range parts {
			if err := copyBlob(ctx, from, part, root); err != nil {
				return err
			}
		}
		return errors.Join(
			root.WriteFile(ocispec.ImageIndexFile, append(index, '\n'), modeFile),
			root.WriteFile(ocispec.ImageLayoutFile, []byte(`{"imageLayoutVersion":"`+ocispec.ImageLayoutVersion+`"}`+"\n"), modeFile),
		)
	})
}

func copyBlob(ctx context.Context, from folder, desc ocispec.Descriptor, to *os.Root) (err error) {
	name := filepath.Join("blobs", desc.Digest.Algorithm().String(), desc.Digest.Encoded())
	rc, err := from.Fetch(ctx, desc)
	if err != nil {
		return err
	}
	defer rc.Close()
	if err := to.MkdirAll(filepath.Dir(name), modeDir); err != nil {
		return err
	}
	f, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, modeFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	verified := content.NewVerifyReader(until(ctx, rc), desc)
	if _, err := io.Copy(f, verified); err != nil {
		return fmt.Errorf("blob %s: %w", desc.Digest, err)
	}
	if err := verified.Verify(); err != nil {
		return fmt.Errorf("blob %s: %w", desc.Digest, err)
	}
	return nil
}
