package launcher

import (
	"fmt"
	"syscall"
	"unsafe"
)

// raiseLoopback brings up the loopback of this network namespace. What is in it can talk
// to itself then, and to nobody else.
func raiseLoopback() error {
	const raise = "bring up the own loopback"
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", raise, err)
	}
	defer func() { _ = syscall.Close(fd) }()
	request := struct {
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte // as large as the kernel's ifreq
	}{flags: syscall.IFF_UP | syscall.IFF_RUNNING}
	copy(request.name[:], "lo")
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return fmt.Errorf("%s: %w", raise, errno)
	}
	return nil
}
