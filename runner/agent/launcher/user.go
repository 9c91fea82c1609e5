package launcher

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"
)

const (
	prSetNoNewPrivs   = 38
	prCapAmbient      = 47
	prCapAmbientClear = 4
	capVersion3       = 0x20080522
	keyctlJoinSession = 1
	sysCloseRange     = 436
	closeRangeCloexec = 4
	highestCapability = 63
	highestDescriptor = ^uint32(0)
	isolating         = "isolating an engine"
)

// become takes the engine's user, permanently: no capability is left, and none
// comes back by an executable that is setuid or has capabilities of its own.
func (p Plan) become() error {
	// A session keyring of its own: the agent's is the agent's.
	_, _, _ = syscall.RawSyscall(syscall.SYS_KEYCTL, keyctlJoinSession, 0, 0)
	if err := dropBounds(); err != nil && (p.Sight != nil || p.Bare) {
		return err // in a container without that right, no_new_privs has to do
	}
	_ = prctl(prCapAmbient, prCapAmbientClear) // there are none before Linux 4.3
	if !p.OwnUsers {                           // there is no other user to take there
		if err := p.takeUser(); err != nil {
			return err
		}
	}
	if err := clearCapabilities(); err != nil {
		return fmt.Errorf("%s: drop capabilities: %w", isolating, err)
	}
	if err := prctl(prSetNoNewPrivs, 1); err != nil {
		return fmt.Errorf("%s: forbid new privileges: %w", isolating, err)
	}
	if p.OwnUsers { // others of the same user listen on such sockets
		return keepToItself()
	}
	return nil
}

func (p Plan) takeUser() error {
	// The system calls themselves: those of package syscall are for all threads,
	// and this one alone becomes the engine.
	gid, uid := uintptr(p.GID), uintptr(p.UID)
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		return fmt.Errorf("%s: leave all groups: %w", isolating, errno)
	}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESGID, gid, gid, gid); errno != 0 {
		return fmt.Errorf("%s: take group %d: %w", isolating, p.GID, errno)
	}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, uid, uid, uid); errno != 0 {
		return fmt.Errorf("%s: take user %d: %w", isolating, p.UID, errno)
	}
	return nil
}

// dropBounds takes every capability out of what this process can ever get.
func dropBounds() error {
	for capability := uintptr(0); capability <= highestCapability; capability++ {
		err := prctl(syscall.PR_CAPBSET_DROP, capability)
		if errors.Is(err, syscall.EINVAL) { // beyond the last that this kernel knows
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: drop capability %d: %w", isolating, capability, err)
		}
	}
	return nil
}

func prctl(option int, argument uintptr) error {
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, uintptr(option), argument, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// closeFrom lets the engine have no file from fd on.
func closeFrom(fd int) error {
	_, _, errno := syscall.RawSyscall(sysCloseRange, uintptr(fd), uintptr(highestDescriptor), closeRangeCloexec)
	if errno == syscall.ENOSYS || errno == syscall.EINVAL { // before Linux 5.11: those that the agent passes are known
		for last := fd + 64; fd < last; fd++ {
			_, _, _ = syscall.RawSyscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_SETFD, syscall.FD_CLOEXEC)
		}
		return nil
	}
	if errno != 0 {
		return fmt.Errorf("close what is the agent's: %w", errno)
	}
	return nil
}

// clearCapabilities drops what this thread has. A change of user does that too,
// unless the process has asked to keep them.
func clearCapabilities() error {
	header := struct {
		version uint32
		pid     int32
	}{version: capVersion3}
	var none [2]struct{ effective, permitted, inheritable uint32 }
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0); errno != 0 {
		return errno
	}
	return nil
}
