package datadir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ReadRegular reads a regular file below root that an engine may have made, up to
// limit bytes. It never blocks on a pipe. found is false when there is none.
func ReadRegular(root *os.Root, name string, limit int64) (data []byte, found bool, err error) {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, true, fmt.Errorf("%s of the engine: %w", name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, true, err
	case !info.Mode().IsRegular():
		return nil, true, fmt.Errorf("%s of the engine is not a regular file", name)
	case info.Size() > limit:
		return nil, true, fmt.Errorf("%s of the engine has %d bytes, more than %d", name, info.Size(), limit)
	}
	data, err = io.ReadAll(io.LimitReader(f, limit))
	return data, true, err
}
