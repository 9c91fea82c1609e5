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
	body, err := o.registryReferrers.Fetch(ctx, desc)
	if err != nil || IsManifest(desc.MediaType) {
		return body, err
	}
	return &onwardReader{body: body, size: desc.Size, left: blobAttempts - 1}, nil
}

type onwardReader struct {
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

// again has the registry send the rest of the blob; false when it cannot do that.
func (r *onwardReader) again() bool {
	r.left--
	seeker, ok := r.body.(io.Seeker)
	if !ok {
		return false
	}
	// A seek to where the reader thinks it is asks for nothing: so go away first.
	if _, err := seeker.Seek(0, io.SeekEnd); err != nil {
		return false
	}
	_, err := seeker.Seek(r.at, io.SeekStart)
	return err == nil
}

func (r *onwardReader) Close() error { return r.body.Close() }
