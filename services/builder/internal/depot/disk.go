package depot

import (
	"errors"
	"syscall"
)

// isDisk tells trouble of this machine from trouble with an archive.
func isDisk(err error) bool {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
