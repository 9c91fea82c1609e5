// Package scriptfile owns reading the files that scripts leave for the engine: whatever a
// script made there instead, reading ends.
package scriptfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// ErrNotRegular says that there is something else than a regular file: a link, a pipe, a
// device, a folder.
var ErrNotRegular = errors.New("is not a regular file")

// TooLargeError says that a file is larger than it may be.
type TooLargeError struct{ Bytes int64 }

// Error says how large it may be.
func (e TooLargeError) Error() string { return fmt.Sprintf("is larger than %d KiB", e.Bytes>>10) }

// Read reads a file of at most that many bytes. Its errors are ErrNotRegular,
// TooLargeError, and those of the system, fs.ErrNotExist among them.
func Read(path string, atMost int64) ([]byte, error) {
	// Neither through a link nor waiting for a program that writes to a pipe.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	switch {
	case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENXIO): // a link; a socket
		return nil, ErrNotRegular
	case err != nil:
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, ErrNotRegular
	}
	data, err := io.ReadAll(io.LimitReader(f, atMost+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > atMost {
		return nil, TooLargeError{atMost}
	}
	return data, nil
}
