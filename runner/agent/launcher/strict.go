package launcher

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// devices is where they are.
const devices = "/dev"

// harmlessDevices are those that give nobody anything of others.
var harmlessDevices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// deviceLinks are names in /dev that lead to what each process has.
var deviceLinks = [][2]string{
	{"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"}, {"pts/ptmx", "ptmx"},
}

func takeDevices() (taken []tree, err error) {
	for _, name := range harmlessDevices {
		path := devices + "/" + name
		device, err := clone(atCWD, path, path, syscall.MS_NOSUID|syscall.MS_NOEXEC)
		if err != nil {
			return nil, err
		}
		taken = append(taken, device)
	}
	return taken, nil
}

// narrow closes the machine as it is, and empties directories of it, which stay
// writable for the launcher until look is done with them.
func (s *Sight) narrow(kept []tree) error {
	if err := closeAll(); err != nil {
		return err
	}
	for _, dir := range append([]string{devices}, s.Empty...) {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", harmless|syscall.MS_NOEXEC, "mode=755,size=64k"); err != nil {
			return fmt.Errorf("empty %s: %w", dir, err)
		}
	}
	for _, device := range kept {
		if err := device.put(); err != nil {
			return err
		}
	}
	for _, link := range deviceLinks {
		if err := os.Symlink(link[0], devices+"/"+link[1]); err != nil {
			return err
		}
	}
	// Its own terminals: those of the machine belong to the same user.
	if err := os.Mkdir(devices+"/pts", 0o755); err != nil {
		return err
	}
	if err := syscall.Mount("devpts", devices+"/pts", "devpts", syscall.MS_NOSUID|syscall.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"); err != nil {
		return fmt.Errorf("own terminals: %w", err)
	}
	return nil
}

// closeAll makes everything that is mounted read-only. It needs Linux 5.12.
func closeAll() error {
	const readOnly, recursive = 1, 0x8000
	attr := struct{ set, clear, propagation, namespace uint64 }{set: readOnly}
	root, err := syscall.BytePtrFromString("/")
	if err != nil {
		return err
	}
	cwd := atCWD
	_, _, errno := syscall.Syscall6(sysMountSetattr, uintptr(cwd), uintptr(unsafe.Pointer(root)), recursive, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("close the machine: %w", errno)
	}
	return nil
}

// barNamespaces lets nobody in this user namespace make another, in which it
// would have rights again: over nothing of ours, and over a lot of the kernel's
// code. It needs the own /proc.
func barNamespaces() error {
	f, err := os.OpenFile("/proc/sys/user/max_user_namespaces", os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("bar further namespaces: %w", err)
	}
	_, err = f.WriteString("0")
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("bar further namespaces: %w", err)
	}
	return nil
}
