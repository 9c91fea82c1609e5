// Package seal closes the process off: before it looks at rules that others wrote, it gives up
// what it could reach with. It works on every Linux without root, so it holds where the walls
// that the runner builds around the process are missing.
package seal

import (
	"fmt"
	"os"
	"runtime/debug"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxStack is for one goroutine; a stack that grows further ends the process.
const maxStack = 256 << 20 // bytes

// Limits bounds memory, in bytes, for good. The process ends when it needs more.
func Limits(memory int64) error {
	debug.SetMaxStack(maxStack)
	if memory <= 0 {
		return nil
	}
	debug.SetMemoryLimit(memory / 4 * 3) // collect harder before the end comes
	limit := unix.Rlimit{Cur: uint64(memory), Max: uint64(memory)}
	// What is written to, not what is reserved: Go reserves a lot.
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &limit); err != nil {
		return fmt.Errorf("limit memory: %w", err)
	}
	return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // documents may hold secrets
}

// network is what leads to others, files what leads to the disk and to other programs.
var (
	network = []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_IO_URING_SETUP}
	files   = append([]uint32{
		unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_PTRACE,
		unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_MEMFD_CREATE, unix.SYS_UNLINKAT, unix.SYS_MKDIRAT,
		unix.SYS_SYMLINKAT, unix.SYS_LINKAT, unix.SYS_RENAMEAT2, unix.SYS_FCHMODAT, unix.SYS_FCHOWNAT, unix.SYS_TRUNCATE, unix.SYS_MOUNT,
		unix.SYS_SETNS, unix.SYS_UNSHARE, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_BPF, unix.SYS_PIDFD_GETFD,
	}, older...)
)

// Network gives up all that leads to others: no socket can be made any more.
func Network() error { return forbid(network) }

// Everything gives up files, programs and the environment too. What is open stays open.
func Everything() error {
	os.Clearenv()
	return forbid(append(files, network...))
}

// forbid answers system calls with "not permitted", in all threads and for good.
func forbid(calls []uint32) error {
	const (
		archAt, numberAt = 4, 0 // offsets in seccomp_data
		allow            = 0x7fff0000
		refuse           = 0x00050000 | uint32(unix.EPERM)
		setModeFilter    = 1
		allThreads       = 1
		x32              = 0x40000000 // other numbers for the same calls, on amd64
	)
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	end := func(with uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: with} }
	jump := func(how uint16, value uint32, then, otherwise uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | how | unix.BPF_K, Jt: then, Jf: otherwise, K: value}
	}
	program := []unix.SockFilter{
		load(archAt), jump(unix.BPF_JEQ, arch, 1, 0), end(refuse),
		load(numberAt), jump(unix.BPF_JGE, x32, 0, 1), end(refuse),
	}
	for _, call := range calls {
		program = append(program, jump(unix.BPF_JEQ, call, 0, 1), end(refuse))
	}
	program = append(program, end(allow))
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("seal the process: %w", err)
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, setModeFilter, allThreads, uintptr(unsafe.Pointer(&filter))); errno != 0 {
		return fmt.Errorf("seal the process: %w", errno)
	}
	return nil
}

// NoNetwork is how Go says that there is no network, in the errors of what wants one.
const NoNetwork = "operation not permitted"
