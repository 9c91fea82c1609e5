package oci

import (
	"context"
	"errors"
	"io"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// onward is the source of a copy that keeps nothing: its readers go on where a
// connection broke off, so that what was sent on need not be sent again.
type onward struct{ registryReferrers }

// Fetch shadows that of the registry. Manifests are read whole anyway.
func (o onward) Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
	open := func() (io.ReadCloser, error) { return o.registryReferrers.Fetch(ctx, desc) }
	body, err := open()
	if err != nil || IsManifest(desc.MediaType) {
		return body, err
	}
	return &onwardReader{open: open, body: body, size: desc.Size, left: blobAttempts - 1}, nil
}

type onwardReader struct {
	open func() (io.ReadCloser, error)
	body io.ReadCloser

	at, size int64
	left     int // attempts
}

func (r *onwardReader) Read(p []byte) (int, error) {
	for {
		n, err := r.body.Read(p)
		r.at += int64(n)
		if errors.Is(err, io.EOF) && r.at < r.size {
			err = io.ErrUnexpectedEOF
		}
		if n > 0 && err != nil && brokeOff(err) {
			return n, nil // the next call sees it again
		}
		if n > 0 || err == nil || !brokeOff(err) || r.left == 0 || !r.again() {
			return n, err
		}
	}
}

// again opens the blob a second time where it broke off; false when the registry
// cannot do that.
func (r *onwardReader) again() bool {
	r.left--
	body, err := r.open()
	if err != nil {
		return false
	}
	seeker, ok := body.(io.Seeker)
	if !ok {
		body.Close()
		return false
	}
	if _, err := seeker.Seek(r.at, io.SeekStart); err != nil {
		body.Close()
		return false
	}
	r.body.Close()
	r.body = body
	return true
}

func (r *onwardReader) Close() error { return r.body.Close() }
