package providers

import (
	"fmt"
	"io/fs"
	"syscall"
)

// changed is when the kernel last saw a change of the file; nobody sets it.
func changed(info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d %d.%d", s.Ino, s.Ctim.Sec, s.Ctim.Nsec)
	}
	return info.ModTime().String()
}
