package launcher

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"
)

// strip opens the executable of an engine that is to see nothing, and gives this
// namespace a /proc of its own, which the steps before empty still need.
func strip(path string) (executable int, err error) {
	if executable, err = syscall.Open(path, oPath|syscall.O_CLOEXEC, 0); err != nil {
		return -1, fmt.Errorf("%s: %w", path, err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return -1, fmt.Errorf("own mounts: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", harmless|syscall.MS_NOEXEC, ""); err != nil {
		return -1, fmt.Errorf("own /proc: %w", err)
	}
	return executable, nil
}

// empty puts an empty directory that nobody can write to in the place of the root.
func empty() error {
	const at = "/proc" // every machine has one
	if err := syscall.Mount("tmpfs", at, "tmpfs", harmless|syscall.MS_NOEXEC, "mode=555,size=4k"); err != nil {
		return fmt.Errorf("empty root: %w", err)
	}
	if err := syscall.Chdir(at); err != nil {
		return fmt.Errorf("empty root: %w", err)
	}
	if err := syscall.PivotRoot(".", "."); err != nil { // the old root lies over the new one now
		return fmt.Errorf("empty root: %w", err)
	}
	if err := syscall.Unmount(".", syscall.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the machine's files: %w", err)
	}
	if err := syscall.Chdir("/"); err != nil {
		return fmt.Errorf("empty root: %w", err)
	}
	return closeDir("/")
}

// execveat is the number of the call, which package syscall does not have.
var execveat = map[string]uintptr{"amd64": 322, "arm64": 281}

// execDescriptor becomes the program of an open file. It returns only with an error.
func execDescriptor(fd int, arguments, env []string) error {
	argv, err := syscall.SlicePtrFromStrings(arguments)
	if err != nil {
		return err
	}
	envv, err := syscall.SlicePtrFromStrings(env)
	if err != nil {
		return err
	}
	path := new(byte)
	_, _, errno := syscall.RawSyscall6(execveat[runtime.GOARCH], uintptr(fd), uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envv[0])), atEmptyPath, 0)
	runtime.KeepAlive(argv)
	runtime.KeepAlive(envv)
	return errno
}
