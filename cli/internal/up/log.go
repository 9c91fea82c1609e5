package up

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	// maxLogBytes is the size at which a log is turned over.
	maxLogBytes = 16 << 20
	// oldLogs is how many turned logs are kept: x.log.1 is the newest.
	oldLogs = 3
)

// rotate turns a log over that has grown too long and that nobody writes to.
func rotate(path string) error {
	if !tooLong(path) {
		return nil
	}
	if err := makeRoom(path); err != nil {
		return err
	}
	return os.Rename(path, path+".1")
}

// rotateOpen turns a log over whose writer has it open for appending: it is
// copied and cut to nothing. A line written in between is lost, which the logs
// of services can bear; those of jobs do not go this way.
func rotateOpen(path string) (err error) {
	if !tooLong(path) {
		return nil
	}
	if err := makeRoom(path); err != nil {
		return err
	}
	from, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := os.OpenFile(path+".1", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, copyErr := io.Copy(to, from)
	if err := errors.Join(copyErr, to.Close()); err != nil {
		return err
	}
	return from.Truncate(0)
}

func tooLong(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() >= maxLogBytes
}

func makeRoom(path string) error {
	for n := oldLogs; n > 1; n-- {
		err := os.Rename(fmt.Sprintf("%s.%d", path, n-1), fmt.Sprintf("%s.%d", path, n))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// rotateAll turns over the logs of a folder while they are being written.
func rotateAll(dir string) error {
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, log := range logs {
		err = errors.Join(err, rotateOpen(log))
	}
	return err
}

// sizeOf is how long a log is now, in bytes; 0 when there is none.
func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil || info.Size() >= maxLogBytes { // it is turned over at the start
		return 0
	}
	return info.Size()
}
