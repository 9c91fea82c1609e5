package up

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// carrying finds the processes that were started by a supervisor of this data
// folder, or by its children, and still run: they have envOwner in their
// environment, or are executables of ours that work in its folders.
func carrying(l Layout) []leftover {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []leftover
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if name, ok := ours(pid, l); ok {
			if p, err := identify(pid); err == nil {
				found = append(found, leftover{Process: p, name: name})
			}
		}
	}
	return found
}

func ours(pid int, l Layout) (name string, ok bool) {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return "", false // somebody else's, or a kernel thread
	}
	name = filepath.Base(strings.TrimSuffix(exe, " (deleted)"))
	// The supervisor itself is dealt with by its lock.
	if name == "berth" || name == "postgres" {
		return "", false
	}
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return "", false
	}
	if bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+envOwner+"="+l.Dir+"\x00")) {
		return name, true
	}
	if !strings.HasPrefix(name, "berth-") && !isEngineUser(pid) {
		return "", false
	}
	cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	for _, dir := range []string{l.Runners(), l.builderDir()} {
		inside := dir + string(filepath.Separator)
		if strings.HasPrefix(cwd, inside) || bytes.Contains(args, []byte("\x00"+inside)) {
			return name, true
		}
	}
	return "", false
}

// isEngineUser tells whether a process runs as one of the uids that are given
// to engines: by runners to each job, or by us or builder to a runner whose
// machine does not allow that.
func isEngineUser(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	_, rest, _ := bytes.Cut(status, []byte("\nUid:"))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return false
	}
	uid, err := strconv.Atoi(string(fields[0]))
	if err != nil {
		return false
	}
	return uid >= firstEngineUID && uid < firstEngineUID+2*engineUIDs || uid >= firstJobUID && uid < firstJobUID+jobUIDs
}
