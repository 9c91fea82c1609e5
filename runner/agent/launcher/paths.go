package launcher

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// Numbers of file systems that are the kernel's own, from linux/magic.h.
var kernelsOwn = map[int64]string{
	0x9fa0: "proc", 0x62656572: "sysfs", 0x1cd1: "devpts", 0x27e0eb: "cgroup", 0x63677270: "cgroup2", 0x64626720: "debugfs",
	0x74726163: "tracefs", 0x73636673: "securityfs", 0xcafe4a11: "bpf", 0x62656570: "configfs", 0x6e736673: "nsfs", 0xde5e81e4: "efivarfs",
}

// takePaths takes along what the engine is shown of the machine.
func (s *Sight) takePaths() ([]tree, error) {
	if len(s.Paths) == 0 {
		return nil, nil
	}
	var data syscall.Stat_t
	if err := syscall.Stat(s.Data, &data); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Data, err)
	}
	var all []tree
	for _, p := range s.Paths {
		fd, err := s.openPath(p, data)
		if err != nil {
			return nil, fmt.Errorf("path %s: %w", p.Name, err)
		}
		flags := uintptr(harmless)
		if !p.Write {
			flags |= syscall.MS_RDONLY
		}
		t, err := clone(fd, "", p.Name, flags)
		if err == nil && p.Map != 0 {
			err = t.mapOwners(p.Map)
		}
		if err != nil {
			return nil, fmt.Errorf("path %s: %w", p.Name, err)
		}
		all = append(all, t)
	}
	return all, nil
}

// openPath opens a path from the root on, without following a symlink and without passing
// the data, also where a mount shows that elsewhere.
func (s *Sight) openPath(p Path, data syscall.Stat_t) (fd int, err error) {
	if !strings.HasPrefix(p.Name, "/") {
		return 0, errors.New("it is not absolute")
	}
	fd, err = syscall.Open("/", oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	var is syscall.Stat_t
	for _, name := range strings.Split(p.Name[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return 0, errors.New("it is not written the shortest way")
		}
		above := fd
		fd, err = openat(above, name)
		_ = syscall.Close(above)
		if err != nil {
			return 0, err
		}
		if err := syscall.Fstat(fd, &is); err != nil {
			return 0, err
		}
		switch {
		case is.Mode&syscall.S_IFMT == syscall.S_IFLNK:
			return 0, fmt.Errorf("%s in it is a symlink: name where it leads", name)
		case is.Dev == data.Dev && is.Ino == data.Ino:
			return 0, errors.New("it leads to the runner's data")
		}
	}
	if kind := is.Mode & syscall.S_IFMT; kind != syscall.S_IFREG && kind != syscall.S_IFDIR {
		return 0, errors.New("it is neither a file nor a directory")
	}
	var system syscall.Statfs_t
	if err := syscall.Fstatfs(fd, &system); err != nil {
		return 0, err
	}
	if name := kernelsOwn[int64(system.Type)]; name != "" { //nolint:unconvert // its type differs from machine to machine
		return 0, fmt.Errorf("it is in a file system of the kernel's own (%s)", name)
	}
	if is.Mode&syscall.S_IFMT == syscall.S_IFDIR {
		if err := s.aside(is); err != nil {
			return 0, err
		}
	}
	return fd, nil
}

// aside refuses a directory that has the data in it.
func (s *Sight) aside(dir syscall.Stat_t) error {
	fd, err := syscall.Open(s.Data, oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	var is, above syscall.Stat_t
	for err == nil {
		if err = syscall.Fstat(fd, &is); err != nil {
			break
		}
		if is.Dev == dir.Dev && is.Ino == dir.Ino {
			return errors.New("the runner's data is in it")
		}
		var next int
		if next, err = syscall.Openat(fd, "..", oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0); err != nil {
			break
		}
		_ = syscall.Close(fd)
		fd = next
		if err = syscall.Fstat(fd, &above); err == nil && above.Dev == is.Dev && above.Ino == is.Ino {
			return nil // the root is its own parent
		}
	}
	return err
}
