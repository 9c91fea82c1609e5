package oci

import (
	"errors"
	"hash"
	"io"
	"sync"
)

// copyPartBytes is the size of reads and writes of blobs: what was read is in the
// processor's cache still when it is hashed and written.
const copyPartBytes = 128 << 10

var copyParts = sync.Pool{New: func() any { return new([copyPartBytes]byte) }}

// copyAndHash copies r to w, and hashes what was written. Several blobs are under
// way at once; hashing on another processor than reading was slower, measured.
func copyAndHash(w io.Writer, sum hash.Hash, r io.Reader) (n int64, err error) {
	part, _ := copyParts.Get().(*[copyPartBytes]byte)
	defer copyParts.Put(part)
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
