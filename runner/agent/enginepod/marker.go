package enginepod

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// What the marker says.
const (
	saysBegun = "begun\n" // an engine was started
	saysNever = "never\n" // none was, and none will be; of the same length, to be written over it
)

var (
	// errAlive: an engine, or what it started, holds the marker.
	errAlive = errors.New("the engine still runs")
	errUsed  = errors.New("this attempt was begun before, or was given up: it is not started again")
)

// take locks the marker at path and returns what it says. The lock lasts until
// every process that has the file, also by inheritance, has closed it.
func take(path string) (f *os.File, says string, err error) {
	f, err = os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, "", fmt.Errorf("marker of the attempt: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, "", errAlive
		}
		return nil, "", fmt.Errorf("lock the marker of the attempt: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(f, 64))
	if err != nil {
		f.Close()
		return nil, "", fmt.Errorf("marker of the attempt: %w", err)
	}
	return f, string(raw), nil
}

func write(f *os.File, says string) error {
	if _, err := f.WriteAt([]byte(says), 0); err != nil {
		return fmt.Errorf("write the marker of the attempt: %w", err)
	}
	return f.Sync()
}

// begin takes the marker for an engine that is started now, once.
func begin(path string) (*os.File, error) {
	f, says, err := take(path)
	if err != nil {
		return nil, err
	}
	if says != "" {
		f.Close()
		return nil, errUsed
	}
	if err := write(f, saysBegun); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// giveUp makes sure that no engine of this attempt is started any more, and
// says whether one was. It fails with errAlive while one runs.
func giveUp(path string) (began bool, err error) {
	f, says, err := take(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if says == "" {
		return false, write(f, saysNever)
	}
	return says != saysNever, nil
}
