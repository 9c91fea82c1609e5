package launcher

import (
	"fmt"
	"syscall"
	"unsafe"
)

// Landlock, as far as it is used here (linux/landlock.h).
const (
	sysLandlockCreate   = 444
	sysLandlockRestrict = 446

	landlockVersion       = 1
	landlockScopes        = 6 // the version that knows of scopes, Linux 6.12
	scopeAbstractSockets  = 1
	scopeSignals          = 2
	landlockAttributeSize = 24
)

// keepToItself keeps this process and its children from sockets that have a
// name and no file, which all processes of a machine share, but for their own.
// Before Linux 6.12, and where Landlock is off, there is nothing to keep them
// off with. It needs no_new_privs.
func keepToItself() error {
	if !hasScopes() {
		return nil
	}
	attr := struct{ files, ports, scopes uint64 }{scopes: scopeAbstractSockets | scopeSignals}
	rules, _, errno := syscall.RawSyscall(sysLandlockCreate, uintptr(unsafe.Pointer(&attr)), landlockAttributeSize, 0)
	if errno != 0 {
		return fmt.Errorf("%s: keep off abstract sockets: %w", isolating, errno)
	}
	_, _, errno = syscall.RawSyscall(sysLandlockRestrict, rules, 0, 0)
	_ = syscall.Close(int(rules))
	if errno != 0 {
		return fmt.Errorf("%s: keep off abstract sockets: %w", isolating, errno)
	}
	return nil
}

func hasScopes() bool {
	version, _, errno := syscall.RawSyscall(sysLandlockCreate, 0, 0, landlockVersion)
	return errno == 0 && version >= landlockScopes
}
