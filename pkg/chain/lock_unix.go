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
