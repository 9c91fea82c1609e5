//go:build unix

package chain

import (
	"errors"
	"os"
	"syscall"
)

// lock takes the file for this process alone; the kernel frees it when the
// file is closed, also by kill -9.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrBusy
	}
	return err
}

// unlock frees it at once, also while a child that is just being started still has a copy
// of the file.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
