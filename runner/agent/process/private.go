package process

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/berth-dev/berth/runner/agent/launcher"
)

// shared are directories in which every user of a machine may leave files.
var shared = []string{"/tmp", "/var/tmp", "/dev/shm"}

// Private returns the directories that an engine gets empty, and those of the
// given paths that would vanish with them.
func Private(needed ...string) (private, keep []string) {
	for _, dir := range shared {
		path, err := filepath.EvalSymlinks(dir)
		if err == nil && !slices.Contains(private, path) {
			private = append(private, path)
		}
	}
	for _, path := range needed {
		resolved, err := filepath.EvalSymlinks(path)
		if err != nil || !filepath.IsAbs(path) {
			continue
		}
		for _, p := range []string{path, resolved} {
			if below(p, private) && !slices.Contains(keep, p) {
				keep = append(keep, p)
			}
		}
	}
	slices.Sort(keep) // a directory comes before what is in it
	return private, keep
}

// system are the directories of a machine in which programs and their settings
// are, and no data.
var system = []string{"bin", "dev", "etc", "gnu", "lib", "lib32", "lib64", "libx32", "nix", "opt", "proc", "sbin", "sys", "usr"}

// settled are names that a system may keep elsewhere, in a directory of data.
var settled = []string{"/etc/resolv.conf", "/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/pki/tls/certs", "/etc/localtime"}

// Narrow adds to a sight what keeps an engine from all that its user has on this
// machine: directories other than those of the system are empty, and those in
// them that the user owns. What is needed of them stays, unless the user's home
// or the data would come with it.
func Narrow(sight *launcher.Sight, uid int, needed ...string) error {
	sight.Strict = true
	sight.Private, _ = Private()
	all, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	for _, entry := range all {
		path := "/" + entry.Name()
		switch {
		case !entry.IsDir() || slices.Contains(sight.Private, path): // links lead to what is judged itself
		case !slices.Contains(system, entry.Name()):
			sight.Empty = append(sight.Empty, path)
		case slices.Contains([]string{"dev", "proc", "sys"}, entry.Name()): // the launcher makes them
		default:
			sight.Empty = append(sight.Empty, owned(path, uid)...)
		}
	}
	whole := []string{sight.Data}
	if home, err := os.UserHomeDir(); err == nil && home != "" {
		whole = append(whole, home)
	}
	if account, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		whole = append(whole, account.HomeDir)
	}
	gone := slices.Concat(sight.Private, sight.Empty)
	keep := func(path string) {
		swallows := func(dir string) bool { return dir == path || strings.HasPrefix(dir, path+string(os.PathSeparator)) }
		if below(path, gone) && !slices.ContainsFunc(whole, swallows) && !slices.Contains(sight.Keep, path) {
			sight.Keep = append(sight.Keep, path)
		}
	}
	for _, path := range slices.Concat(needed, settled) {
		resolved, err := filepath.EvalSymlinks(path)
		if err != nil || !filepath.IsAbs(path) {
			continue
		}
		keep(filepath.Clean(path))
		keep(resolved)
	}
	slices.Sort(sight.Keep) // a directory comes before what is in it
	return nil
}

// owned returns a directory if it belongs to a user, else those in it that do.
func owned(dir string, uid int) []string {
	belongs := func(path string) bool {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() {
			return false
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		return ok && int(stat.Uid) == uid
	}
	if belongs(dir) {
		return []string{dir}
	}
	entries, err := os.ReadDir(dir)
	if err != nil { // what the agent cannot list is not its user's
		return nil
	}
	var all []string
	for _, entry := range entries {
		if path := filepath.Join(dir, entry.Name()); belongs(path) {
			all = append(all, path)
		}
	}
	return all
}

func below(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		return strings.HasPrefix(path, dir+string(os.PathSeparator))
	})
}
