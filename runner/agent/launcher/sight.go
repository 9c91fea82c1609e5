package launcher

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"unsafe"
)

// System calls that package syscall has no name for; their numbers are the same
// on all machines that we build for.
const (
	sysOpenTree     = 428
	sysMoveMount    = 429
	sysMountSetattr = 442

	openTreeClone      = 1
	moveMountEmptyPath = 4
	atEmptyPath        = 0x1000
	attrIDMap          = 0x00100000
	oPath              = 0x200000
)

// ErrNoIDMap says that this kernel, or the file system of the scratch, shows
// files under their owners on disk only. The agent recognises it by its text.
var ErrNoIDMap = errors.New("files cannot be shown under another owner here")

// harmless are the flags of all that is mounted: no device works there, and no
// executable gives rights.
const harmless = syscall.MS_NOSUID | syscall.MS_NODEV

// tree is a part of the machine's files that is put elsewhere.
type tree struct {
	fd    int
	at    string
	flags uintptr
}

// look makes this mount namespace what the engine is to see.
func (s *Sight) look() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("own mounts: %w", err)
	}
	// What is shown is taken before it is hidden.
	shown, err := s.take()
	if err != nil {
		return err
	}
	if s.Strict {
		if err := s.narrow(shown.devices); err != nil {
			return err
		}
	}
	if err := syscall.Mount("proc", "/proc", "proc", harmless|syscall.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("own /proc: %w", err)
	}
	for _, dir := range s.Private {
		if s.Strict { // it may have been in what is empty now
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
		if err := syscall.Mount("tmpfs", dir, "tmpfs", harmless, "mode=1777,size=1g"); err != nil {
			return fmt.Errorf("own %s: %w", dir, err)
		}
	}
	for _, t := range shown.kept {
		if err := t.put(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(s.Data, 0o755); err != nil { // it may have been in /tmp
		return err
	}
	if err := syscall.Mount("tmpfs", s.Data, "tmpfs", harmless|syscall.MS_NOEXEC, "mode=755,size=64k"); err != nil {
		return fmt.Errorf("hide %s: %w", s.Data, err)
	}
	for _, t := range slices.Concat(shown.own, shown.paths) {
		if err := t.put(); err != nil {
			return err
		}
	}
	if err := closeDir(s.Data); err != nil {
		return err
	}
	if !s.Strict {
		return nil
	}
	for _, dir := range append([]string{devices}, s.Empty...) {
		if err := closeDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// closeDir makes an own, empty directory read-only.
func closeDir(dir string) error {
	if err := syscall.Mount("", dir, "", harmless|syscall.MS_NOEXEC|syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("close %s: %w", dir, err)
	}
	return nil
}

// trees are what is shown: devices, what is kept in empty directories, what of the
// machine was granted, and of the data.
type trees struct{ devices, kept, paths, own []tree }

func (s *Sight) take() (t trees, err error) {
	if s.Strict {
		if t.devices, err = takeDevices(); err != nil {
			return t, err
		}
	}
	for _, path := range s.Keep {
		kept, err := clone(atCWD, path, path, harmless|syscall.MS_RDONLY)
		if err != nil {
			return t, err
		}
		t.kept = append(t.kept, kept)
	}
	if t.paths, err = s.takePaths(); err != nil {
		return t, err
	}
	folder, err := s.open(s.Folder)
	if err != nil {
		return t, err
	}
	flags := uintptr(harmless)
	if len(s.Open) > 0 {
		flags |= syscall.MS_RDONLY
	}
	own, err := clone(folder, "", s.Folder, flags)
	if err != nil {
		return t, err
	}
	t.own = append(t.own, own)
	parts, err := s.parts(folder)
	if err != nil {
		return t, err
	}
	t.own = append(t.own, parts...)
	for _, dir := range s.Shown {
		fd, err := s.open(dir)
		if err != nil {
			return t, err
		}
		shown, err := clone(fd, "", dir, harmless|syscall.MS_RDONLY)
		if err != nil {
			return t, err
		}
		t.own = append(t.own, shown)
	}
	if s.Scratch == "" {
		return t, nil
	}
	scratch, err := s.open(s.Scratch)
	if err != nil {
		return t, err
	}
	if own, err = clone(scratch, "", s.Scratch, harmless); err != nil {
		return t, err
	}
	t.own = append(t.own, own)
	if s.ScratchMap == 0 {
		return t, nil
	}
	return t, own.mapOwners(s.ScratchMap)
}

// parts are those of the folder that are more closed, or more open, than it.
func (s *Sight) parts(folder int) (parts []tree, err error) {
	take := func(name string, flags uintptr) error {
		fd, err := openat(folder, name)
		if errors.Is(err, syscall.ENOENT) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s of the job: %w", name, err)
		}
		part, err := clone(fd, "", s.Folder+"/"+name, flags)
		parts = append(parts, part)
		return err
	}
	for _, name := range s.Closed {
		if err := take(name, harmless|syscall.MS_RDONLY); err != nil {
			return nil, err
		}
	}
	for _, name := range s.Open {
		if err := take(name, harmless); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// open opens what is below Data without following a symlink there.
func (s *Sight) open(path string) (fd int, err error) {
	below, inside := strings.CutPrefix(path, s.Data+string(os.PathSeparator))
	if !inside {
		return 0, fmt.Errorf("%s is not in %s", path, s.Data)
	}
	fd, err = syscall.Open(s.Data, oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	for _, name := range strings.Split(below, string(os.PathSeparator)) {
		if err != nil {
			break
		}
		above := fd
		fd, err = openat(above, name)
		_ = syscall.Close(above)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return fd, nil
}

func openat(dir int, name string) (fd int, err error) {
	return syscall.Openat(dir, name, oPath|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
}

const atCWD = -100

// clone takes a copy of the mount at a path, or of the open file when the path
// is empty, to be put at another place.
func clone(dir int, path, at string, flags uintptr) (tree, error) {
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return tree{}, err
	}
	how := uintptr(openTreeClone | syscall.O_CLOEXEC)
	if path == "" {
		how |= atEmptyPath
	}
	fd, _, errno := syscall.Syscall(sysOpenTree, uintptr(dir), uintptr(unsafe.Pointer(name)), how)
	if errno != 0 {
		return tree{}, fmt.Errorf("take %s along: %w", at, errno)
	}
	return tree{fd: int(fd), at: at, flags: flags}, nil
}

// put mounts the tree at its place, which is made where it is missing.
func (t tree) put() error {
	var info syscall.Stat_t
	if err := syscall.Fstat(t.fd, &info); err != nil {
		return fmt.Errorf("show %s: %w", t.at, err)
	}
	if err := place(t.at, info.Mode&syscall.S_IFMT == syscall.S_IFDIR); err != nil {
		return fmt.Errorf("show %s: %w", t.at, err)
	}
	at, err := syscall.BytePtrFromString(t.at)
	if err != nil {
		return err
	}
	empty := new(byte)
	cwd := atCWD
	_, _, errno := syscall.Syscall6(sysMoveMount, uintptr(t.fd), uintptr(unsafe.Pointer(empty)), uintptr(cwd), uintptr(unsafe.Pointer(at)), moveMountEmptyPath, 0)
	if errno != 0 {
		return fmt.Errorf("show %s: %w", t.at, errno)
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(t.at, &fs); err != nil {
		return fmt.Errorf("limit %s: %w", t.at, err)
	}
	if err := syscall.Mount("", t.at, "", t.flags|limitsOf(fs.Flags)|syscall.MS_BIND|syscall.MS_REMOUNT, ""); err != nil {
		return fmt.Errorf("limit %s: %w", t.at, err)
	}
	return nil
}

// limitsOf are the limits that a mount has already. In a user namespace of ours
// nobody may lift them.
func limitsOf(statfs int64) uintptr {
	const relatime = 0x1000 // as statfs says it
	// All others have one number here and there.
	flags := uintptr(statfs) & (syscall.MS_RDONLY | syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC | syscall.MS_NOATIME | syscall.MS_NODIRATIME)
	if statfs&relatime != 0 {
		flags |= syscall.MS_RELATIME
	}
	return flags
}

// place makes what is mounted over.
func place(path string, dir bool) error {
	if dir {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(path[:strings.LastIndexByte(path, '/')+1], 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
	if errors.Is(err, syscall.EROFS) { // it is there already, in what was put before
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// mapOwners shows the files of a tree under the owners that a user namespace
// says.
func (t tree) mapOwners(namespace int) error {
	attr := struct{ set, clear, propagation, namespace uint64 }{set: attrIDMap, namespace: uint64(namespace)}
	empty := new(byte)
	_, _, errno := syscall.Syscall6(sysMountSetattr, uintptr(t.fd), uintptr(unsafe.Pointer(empty)), atEmptyPath, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("%w (%s: %w)", ErrNoIDMap, t.at, errno)
	}
	return nil
}
