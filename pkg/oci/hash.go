package oci

import (
	"errors"
	"hash"
	"io"
)

// Blobs are hashed in parts while the next ones are read and written. The parts
// are small enough to be in the processor's cache still, and hashDepth of them wait
// at most.
const (
	hashPartBytes = 256 << 10
	hashDepth     = 4
)

// copyAndHash copies r to w and hashes it side by side. It returns once all that
// was written is hashed.
func copyAndHash(w io.Writer, sum hash.Hash, r io.Reader) (n int64, err error) {
	free, full := make(chan []byte, hashDepth), make(chan []byte, hashDepth)
	hashed := make(chan struct{})
	go func() {
		defer close(hashed)
		for part := range full {
			sum.Write(part) // it never fails
			free <- part[:cap(part)]
		}
	}()
	defer func() {
		close(full)
		<-hashed
	}()
	for made := 0; ; {
		var part []byte
		select {
		case part = <-free:
		default:
			if made < hashDepth {
				part = make([]byte, hashPartBytes)
				made++
			} else {
				part = <-free
			}
		}
		got, readErr := fillPart(r, part)
		if got > 0 {
			wrote, err := w.Write(part[:got])
			full <- part[:wrote]
			n += int64(wrote)
			if err != nil {
				return n, err
			}
		}
		if errors.Is(readErr, io.EOF) {
			return n, nil
		}
		if readErr != nil {
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
