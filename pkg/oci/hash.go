package oci

import (
	"errors"
	"hash"
	"io"
	"sync"
)

// Blobs are copied and hashed in parts that are small enough to be in the
// processor's cache still when they are hashed. A large blob is hashed by another
// processor while the next part is read and written: hashDepth parts wait at most.
const (
	hashPartBytes = 128 << 10
	hashDepth     = 4

	// hashAsideBytes is the size from which a second processor is worth it: below,
	// other blobs that are under way keep all of them busy.
	hashAsideBytes = 32 << 20
)

// parts are buffers of hashPartBytes.
var parts = sync.Pool{New: func() any { return new([hashPartBytes]byte) }}

// copyAndHash copies r to w and hashes it. It returns once all that was written
// is hashed. size is about how much there is.
func copyAndHash(w io.Writer, sum hash.Hash, r io.Reader, size int64) (n int64, err error) {
	if size >= hashAsideBytes {
		return copyAndHashAside(w, sum, r)
	}
	part, _ := parts.Get().(*[hashPartBytes]byte)
	defer parts.Put(part)
	for {
		got, readErr := r.Read(part[:])
		wrote, err := w.Write(part[:got])
		sum.Write(part[:wrote]) // it never fails
		n += int64(wrote)
		switch {
		case err != nil:
			return n, err
		case errors.Is(readErr, io.EOF):
			return n, nil
		case readErr != nil:
			return n, readErr
		}
	}
}

func copyAndHashAside(w io.Writer, sum hash.Hash, r io.Reader) (n int64, err error) {
	type filled struct {
		part *[hashPartBytes]byte
		n    int
	}
	full, free := make(chan filled, hashDepth), make(chan *[hashPartBytes]byte, hashDepth+1)
	hashed := make(chan struct{})
	go func() {
		defer close(hashed)
		for f := range full {
			sum.Write(f.part[:f.n]) // it never fails
			free <- f.part
		}
	}()
	for range cap(free) {
		part, _ := parts.Get().(*[hashPartBytes]byte)
		free <- part
	}
	defer func() {
		close(full)
		<-hashed
		for len(free) > 0 {
			parts.Put(<-free)
		}
	}()
	for {
		part := <-free
		got, readErr := fillPart(r, part[:])
		wrote, err := w.Write(part[:got])
		n += int64(wrote)
		full <- filled{part, wrote}
		switch {
		case err != nil:
			return n, err
		case errors.Is(readErr, io.EOF):
			return n, nil
		case readErr != nil:
			return n, readErr
		}
	}
}

// fillPart reads until the part is full, or an error.
func fillPart(r io.Reader, part []byte) (n int, err error) {
	for n < len(part) && err == nil {
		var got int
		got, err = r.Read(part[n:])
		n += got
	}
	return n, err
}
