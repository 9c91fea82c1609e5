package process

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// CanSeparate finds out whether this machine gives engines process namespaces of
// their own. launcher is an executable that has package launcher in it.
func CanSeparate(launcher string) bool {
	return Try(Spec{Path: launcher, Dir: "/", Launcher: launcher, Isolation: Isolation{PIDNamespace: true}}) == nil
}

// Reachable checks that the user uid may pass through all directories above
// path, and read it: an engine of another user must get to its job directory
// and to its executable. gid is a group that the user is in.
func Reachable(path string, uid, gid int) error {
	if uid == 0 {
		return nil
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return nil
		}
		search := info.Mode().Perm() & 0o001
		switch {
		case int(stat.Uid) == uid:
			search = info.Mode().Perm() & 0o100
		case int(stat.Gid) == gid:
			search = info.Mode().Perm() & 0o010
		}
		if search == 0 {
			return fmt.Errorf("user %d, as whom engines run, cannot get to %s through %s (chmod o+x %s)", uid, path, dir, dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}
