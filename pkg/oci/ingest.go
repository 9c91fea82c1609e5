package oci

import (
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

// copyBufferBytes is the size of reads and writes of blobs.
const copyBufferBytes = 1 << 20

// writer writes blobs while it holds off GC. It is the layout without the
// index: what it wrote is found by digest once it is listed.
type writer struct {
	*Layout
	unlock func()

	// unsynced leaves it to the system when blobs reach the disk. After a
	// power cut some may be empty; for a pull that is all right, which finds
	// and repairs them, and much faster on slow disks.
	unsynced bool
}

// begin holds the layout's lock shared until end: many may write, GC waits.
func (l *Layout) begin(ctx context.Context) (*writer, error) {
	unlock, err := lockFile(ctx, filepath.Join(l.dir, ".lock"), shared)
	if err != nil {
		return nil, fmt.Errorf("lock layout: %w", err)
	}
	return &writer{Layout: l, unlock: unlock}, nil
}

func (w *writer) end() { w.unlock() }

// Push implements [Layout.Push], without the index.
func (w *writer) Push(ctx context.Context, desc ocispec.Descriptor, r io.Reader) error {
	target, err := w.blobPath(desc.Digest)
	if err != nil {
		return err
	}
	if desc.Size < 0 {
		return fmt.Errorf("blob %s: size %d", desc.Digest, desc.Size)
	}
	partial, err := w.openPartial(ctx, desc, target)
	if err != nil {
		return err
	}
	defer partial.Close()
	if err := fill(partial, desc, r); err != nil {
		if errors.As(err, new(*mismatchError)) {
			os.Remove(partial.Name()) // nothing of it can be used
		}
		return err
	}
	if !w.unsynced {
		if err := partial.Sync(); err != nil {
			return fmt.Errorf("blob %s: %w", desc.Digest, err)
		}
	}
	err = os.Rename(partial.Name(), target)
	if errors.Is(err, fs.ErrNotExist) { // the first one of its algorithm
		if err = os.MkdirAll(filepath.Dir(target), 0o700); err == nil {
			err = os.Rename(partial.Name(), target)
		}
	}
	if err = errors.Join(err, partial.Chmod(0o400)); err != nil {
		return fmt.Errorf("blob %s: %w", desc.Digest, err)
	}
	return nil
}

// healing is the destination of a pull: what is on disk already is believed
// only after it was hashed again, and removed if it changed.
type healing struct{ *writer }

// Exists shadows [Layout.Exists].
func (h healing) Exists(ctx context.Context, desc ocispec.Descriptor) (bool, error) {
	if !h.Has(desc.Digest) {
		return false, nil
	}
	// One at a time, or one pull could remove what another just replaced.
	unlock, err := lockFile(ctx, filepath.Join(h.dir, ".heal.lock"), exclusive)
	if err != nil {
		return false, err
	}
	defer unlock()
	if !h.Has(desc.Digest) {
		return false, nil
	}
	problem, err := h.check(ctx, desc)
	if err != nil || problem == "" {
		return err == nil, err
	}
	file, err := h.blobPath(desc.Digest)
	if err != nil {
		return false, err
	}
	return false, os.Remove(file)
}

// Push replaces a changed manifest too: [transfer] pushes those unasked.
func (h healing) Push(ctx context.Context, desc ocispec.Descriptor, r io.Reader) error {
	if IsManifest(desc.MediaType) {
		if exists, err := h.Exists(ctx, desc); exists || err != nil {
			return err
		}
	}
	return h.writer.Push(ctx, desc, r)
}

// openPartial opens the blob's file in ingest/, locked, or finds that the blob
// is there, perhaps because we waited for the one who wrote it.
func (w *writer) openPartial(ctx context.Context, desc ocispec.Descriptor, target string) (*os.File, error) {
	name := filepath.Join(w.dir, "ingest", desc.Digest.Encoded()+".partial")
	for {
		if info, err := os.Stat(target); err == nil && info.Size() == desc.Size {
			return nil, fmt.Errorf("blob %s: %w", desc.Digest, errdef.ErrAlreadyExists)
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := flock(ctx, f, exclusive); err != nil {
			f.Close()
			return nil, fmt.Errorf("wait for blob %s: %w", desc.Digest, err)
		}
		// The one before us may have renamed or removed this very file.
		opened, err1 := f.Stat()
		current, err2 := os.Stat(name)
		if err1 == nil && err2 == nil && os.SameFile(opened, current) {
			return f, nil
		}
		f.Close()
	}
}

// mismatchError says that content is not what its descriptor promised.
type mismatchError struct {
	want ocispec.Descriptor
	got  string
}

func (e *mismatchError) Error() string {
	return fmt.Sprintf("blob %s of %d bytes: got %s", e.want.Digest, e.want.Size, e.got)
}

// fill completes the partial file from r and verifies the whole. What an
// earlier attempt left is kept if r can skip it, and hashed like the rest.
func fill(f *os.File, desc ocispec.Descriptor, r io.Reader) error {
	offset, sum, err := resume(f, desc, r)
	if err != nil {
		return fmt.Errorf("blob %s: %w", desc.Digest, err)
	}
	// One byte more than promised is enough to notice a longer stream.
	rest := io.LimitReader(r, desc.Size-offset+1)
	n, err := copyAndHash(f, sum.Hash(), rest)
	size := offset + n
	switch {
	case size > desc.Size:
		return &mismatchError{want: desc, got: "more"}
	case err != nil:
		return fmt.Errorf("blob %s: after %d of %d bytes: %w", desc.Digest, size, desc.Size, err)
	case size < desc.Size:
		return fmt.Errorf("blob %s: after %d of %d bytes: %w", desc.Digest, size, desc.Size, io.ErrUnexpectedEOF)
	case sum.Digest() != desc.Digest && offset > 0:
		return restart(f, desc, r)
	case sum.Digest() != desc.Digest:
		return &mismatchError{want: desc, got: sum.Digest().String()}
	}
	return nil
}

// resume positions file and reader behind what is there already and returns
// how much that is.
func resume(f *os.File, desc ocispec.Descriptor, r io.Reader) (int64, digest.Digester, error) {
	sum := desc.Digest.Algorithm().Digester()
	info, err := f.Stat()
	if err != nil {
		return 0, nil, err
	}
	seeker, ok := r.(io.Seeker)
	if have := info.Size(); ok && have > 0 && have <= desc.Size {
		n, err := io.Copy(sum.Hash(), f)
		if err != nil {
			return 0, nil, err
		}
		if _, err := seeker.Seek(n, io.SeekStart); err == nil {
			return n, sum, nil
		}
		sum = desc.Digest.Algorithm().Digester()
	}
	if info.Size() == 0 {
		// ext4 writes a file that was truncated to the disk when it is closed, and
		// has the closer wait.
		return 0, sum, nil
	}
	if err := f.Truncate(0); err != nil {
		return 0, nil, err
	}
	_, err = f.Seek(0, io.SeekStart)
	return 0, sum, err
}

// restart reads everything again when the kept part turned out to be bad.
func restart(f *os.File, desc ocispec.Descriptor, r io.Reader) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := r.(io.Seeker).Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("blob %s: %w", desc.Digest, err)
	}
	return fill(f, desc, struct{ io.Reader }{r})
}
