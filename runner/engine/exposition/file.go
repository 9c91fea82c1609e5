package exposition

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// MaxBytes bounds a metrics file.
const MaxBytes = 256 << 10

// ReadFile reads the file at path; where there is none, there is nothing in it.
func ReadFile(path string) Text {
	// Neither through a link nor waiting for whoever writes to a pipe.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Text{}
	case errors.Is(err, syscall.ELOOP):
		return unread("is not a regular file")
	case err != nil:
		return unread("cannot be opened")
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		return unread("is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	switch {
	case err != nil:
		return unread("cannot be read")
	case len(data) > MaxBytes:
		return unread(fmt.Sprintf("is larger than %d KiB: none of its numbers are kept", MaxBytes>>10))
	}
	return Parse(data)
}

func unread(why string) Text { return Text{Problems: []string{"the metrics file " + why}} }
