package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/pkg/plugin/grant"
)

// name is what the first process of a room is called by, in place of the executable's
// name.
const name = "berth-in-image"

// NotEntered is the exit code of a process that could not enter its room; why is the
// last line of its stderr.
const NotEntered = 125

// nobody is the user that a program of root is in a room.
const nobody = 65532

// Room is where a program of an image runs: it sees the image's files, read-only, an
// empty /tmp, harmless devices, and the directories in Open at their own paths. Its
// user is the one who starts it, in a user namespace that has nobody else and gives no
// rights. It shares the network of the process that starts it.
type Room struct {
	// Root has the image's files. It belongs to who starts the program.
	Root string
	// Open are directories, absolute, that the program may write to.
	Open []string
	// Paths are files and directories of the machine that are shown too.
	Paths []grant.Path
	// Hosts shows the files by which names of the network are found.
	Hosts bool
}

// order is what the first process of a room gets as its argument, as JSON.
type order struct {
	Room
	Dir string
}

// Command is a command that runs args in the room, in dir, which is in Open. Its
// environment is the caller's to set. Start fails where the kernel gives no user
// namespaces: see Possible.
func (r Room) Command(dir string, args ...string) (*exec.Cmd, error) {
	raw, err := json.Marshal(order{r, dir})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe") //nolint:noctx // the caller starts and ends it
	cmd.Args = append([]string{name, string(raw)}, args...)
	cmd.Dir = dir
	uid, gid := os.Geteuid(), os.Getegid()
	as := func(id int) []syscall.SysProcIDMap {
		inside := id
		if id == 0 {
			inside = nobody
		}
		return []syscall.SysProcIDMap{{ContainerID: inside, HostID: id, Size: 1}}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:     true,
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC,
		UidMappings: as(uid), GidMappings: as(gid),
		AmbientCaps: []uintptr{unix.CAP_SETPCAP, unix.CAP_SYS_ADMIN, unix.CAP_SYS_RESOURCE},
	}
	return cmd, nil
}

// ErrNotHere says that this machine cannot give a program a room.
var ErrNotHere = errors.New("an image cannot be entered here")

// Why makes of an error of Start one that wraps ErrNotHere, when namespaces are what
// the kernel refuses.
func Why(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%w: the kernel gives no user namespace: %w", ErrNotHere, err)
	}
	return err
}

// init is the whole program when the process was started as the first of a room.
func init() {
	if len(os.Args) < 3 || os.Args[0] != name {
		return
	}
	runtime.LockOSThread() // rights are a thread's until the program starts
	fmt.Fprintln(os.Stderr, "berth: the image cannot be entered:", enter(os.Args[1], os.Args[2:]))
	os.Exit(NotEntered)
}

// enter returns only when the program cannot be started.
func enter(raw string, args []string) error {
	var o order
	if err := json.Unmarshal([]byte(raw), &o); err != nil {
		return err
	}
	if err := o.furnish(); err != nil {
		return err
	}
	if err := move(o.Root); err != nil {
		return err
	}
	if err := drop(); err != nil {
		return err
	}
	if err := syscall.Chdir(o.Dir); err != nil {
		return fmt.Errorf("%s: %w", o.Dir, err)
	}
	path, err := find(args[0])
	if err != nil {
		return err
	}
	return fmt.Errorf("start %s: %w", path, syscall.Exec(path, args, os.Environ()))
}

const harmless = unix.MS_NOSUID | unix.MS_NODEV

// furnish mounts all that is in the room. What it mounts on is found below the image's
// root without leaving that by a symlink, and by descriptor from then on.
func (o order) furnish() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("own mounts: %w", err)
	}
	// Nobody in here gets rights by a namespace of their own. Where /proc is closed,
	// such a namespace gives rights over nothing of ours all the same.
	_ = os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
	if err := unix.Mount(o.Root, o.Root, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("%s: %w", o.Root, err)
	}
	root, err := os.OpenRoot(o.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := fresh(root, "tmp", "mode=1777,size=1g", 0); err != nil {
		return err
	}
	if err := devices(root); err != nil {
		return err
	}
	if err := show(root, "/proc", true, harmless|unix.MS_NOEXEC|unix.MS_RDONLY); err != nil {
		return err
	}
	for _, dir := range o.Open {
		if err := show(root, dir, true, harmless); err != nil {
			return err
		}
	}
	for _, p := range o.Paths {
		info, err := os.Lstat(p.Name)
		if err != nil {
			return fmt.Errorf("show %s: %w", p.Name, err)
		}
		flags := uintptr(harmless)
		if !p.Write {
			flags |= unix.MS_RDONLY
		}
		if err := show(root, p.Name, info.IsDir(), flags); err != nil {
			return err
		}
	}
	if o.Hosts {
		for _, file := range []string{"/etc/resolv.conf", "/etc/hosts"} {
			if _, err := os.Stat(file); err != nil {
				continue
			}
			if err := show(root, file, false, harmless|unix.MS_NOEXEC|unix.MS_RDONLY); err != nil {
				return err
			}
		}
	}
	return limit(o.Root, harmless|unix.MS_RDONLY)
}

// place opens what is mounted on, made where the image has none.
func place(root *os.Root, path string, dir bool) (*os.File, error) {
	path = strings.TrimPrefix(path, "/")
	if dir {
		if err := root.MkdirAll(path, 0o755); err != nil {
			return nil, err
		}
		return root.Open(path)
	}
	if at := strings.LastIndexByte(path, '/'); at > 0 {
		if err := root.MkdirAll(path[:at], 0o755); err != nil {
			return nil, err
		}
	}
	return root.OpenFile(path, os.O_RDONLY|os.O_CREATE, 0o644)
}

func on(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// fresh mounts an empty directory.
func fresh(root *os.Root, path, options string, flags uintptr) error {
	at, err := place(root, path, true)
	if err != nil {
		return err
	}
	defer at.Close()
	if err := unix.Mount("tmpfs", on(at), "tmpfs", harmless|flags, options); err != nil {
		return fmt.Errorf("own /%s: %w", path, err)
	}
	return nil
}

// show mounts what is at a path outside at the same path of the room.
func show(root *os.Root, path string, dir bool, flags uintptr) error {
	at, err := place(root, path, dir)
	if err != nil {
		return fmt.Errorf("show %s: %w", path, err)
	}
	err = unix.Mount(path, on(at), "", unix.MS_BIND|unix.MS_REC, "")
	at.Close()
	if err != nil {
		return fmt.Errorf("show %s: %w", path, err)
	}
	if at, err = place(root, path, dir); err != nil { // what is on top of it now
		return fmt.Errorf("show %s: %w", path, err)
	}
	defer at.Close()
	return limit(on(at), flags)
}

// limit limits a mount, and keeps the limits that it has: nobody may lift them here.
func limit(at string, flags uintptr) error {
	var s unix.Statfs_t
	if err := unix.Statfs(at, &s); err != nil {
		return fmt.Errorf("limit %s: %w", at, err)
	}
	const relatime = 0x1000 // as statfs says it; all others have one number here and there
	flags |= uintptr(s.Flags) & (unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME)
	if s.Flags&relatime != 0 {
		flags |= unix.MS_RELATIME
	}
	if err := unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|flags, ""); err != nil {
		return fmt.Errorf("limit %s: %w", at, err)
	}
	return nil
}

// harmlessDevices are those that give nobody anything of others.
var harmlessDevices = []string{"null", "zero", "full", "random", "urandom"}

func devices(root *os.Root) error {
	if err := fresh(root, "dev", "mode=755,size=64k", unix.MS_NOEXEC); err != nil {
		return err
	}
	for _, device := range harmlessDevices {
		if err := show(root, "/dev/"+device, false, unix.MS_NOSUID|unix.MS_NOEXEC); err != nil {
			return err
		}
	}
	for link, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := root.Symlink(to, "dev/"+link); err != nil {
			return err
		}
	}
	at, err := place(root, "dev", true)
	if err != nil {
		return err
	}
	defer at.Close()
	return limit(on(at), harmless|unix.MS_NOEXEC|unix.MS_RDONLY)
}

// move makes a directory the root of all, and leaves no way back.
func move(root string) error {
	if err := unix.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("enter: %w", err)
	}
	// The old root lies on top of the new one now.
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the machine's files: %w", err)
	}
	return unix.Chdir("/")
}

// drop gives up all rights that the user namespace gave, permanently.
func drop() error {
	for capability := uintptr(0); capability <= 63; capability++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) { // beyond the last that this kernel knows
			break
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", capability, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	var none [2]unix.CapUserData
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// find finds a program as the image's PATH does.
func find(program string) (string, error) {
	if strings.Contains(program, "/") {
		return program, nil
	}
	for _, dir := range strings.Split(os.Getenv("PATH"), ":") {
		path := dir + "/" + program
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", program, fs.ErrNotExist)
}
