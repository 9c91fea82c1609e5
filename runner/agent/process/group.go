package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Limits bound what one engine may use; 0 means no limit.
type Limits struct {
	MemoryBytes int64
	PIDs        int64
}

// cgroupRoot is where control groups are mounted, everywhere.
const cgroupRoot = "/sys/fs/cgroup"

// Group is the control group of one engine: a directory per hierarchy (v1) or
// one (v2). A nil Group limits nothing.
type Group struct {
	dirs []string
	v2   bool
}

// Hierarchies says which limits this machine lets us set, for people:
// "v2", "v1 memory,pids" or "none".
func Hierarchies() string {
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers")); err == nil {
		if os.MkdirAll(filepath.Join(cgroupRoot, "berth"), 0o755) == nil {
			return "v2"
		}
		return "none"
	}
	var can []string
	for _, controller := range []string{"memory", "pids"} {
		if mounted(controller) && os.MkdirAll(filepath.Join(cgroupRoot, controller, "berth"), 0o755) == nil {
			can = append(can, controller)
		}
	}
	if len(can) == 0 {
		return "none"
	}
	return "v1 " + strings.Join(can, ",")
}

// NewGroup makes the group called name, or finds it again. It is best effort:
// limits that the machine does not offer are left out, and nil means none.
func NewGroup(name string, l Limits) *Group {
	g := &Group{}
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers")); err == nil {
		parent := filepath.Join(cgroupRoot, "berth")
		dir := filepath.Join(parent, name)
		_ = os.MkdirAll(parent, 0o755)
		_ = set(parent, "cgroup.subtree_control", "+memory +pids")
		if os.MkdirAll(dir, 0o755) != nil {
			return nil
		}
		_ = limit(dir, "memory.max", l.MemoryBytes)
		_ = limit(dir, "pids.max", l.PIDs)
		g.dirs, g.v2 = []string{dir}, true
		return g
	}
	for controller, bound := range map[string]struct {
		file  string
		value int64
	}{"memory": {"memory.limit_in_bytes", l.MemoryBytes}, "pids": {"pids.max", l.PIDs}} {
		dir := filepath.Join(cgroupRoot, controller, "berth", name)
		if !mounted(controller) || os.MkdirAll(dir, 0o755) != nil {
			continue
		}
		_ = limit(dir, bound.file, bound.value)
		g.dirs = append(g.dirs, dir)
	}
	if len(g.dirs) == 0 {
		return nil
	}
	return g
}

// Remove deletes the group once nothing runs in it.
func (g *Group) Remove() {
	if g == nil {
		return
	}
	for _, dir := range g.dirs {
		_ = os.Remove(dir)
	}
}

// attach lets the process be born in the group, where the kernel can do that.
func (g *Group) attach(attr *syscall.SysProcAttr) (done func()) {
	if g == nil || !g.v2 {
		return func() {}
	}
	f, err := os.Open(g.dirs[0])
	if err != nil {
		return func() {}
	}
	attr.UseCgroupFD, attr.CgroupFD = true, int(f.Fd())
	return func() { f.Close() }
}

// add moves a process into the group, where it was not born there (v1). What it
// started before that is not limited; it has had no time to.
func (g *Group) add(pid int) {
	if g == nil || g.v2 {
		return
	}
	for _, dir := range g.dirs {
		_ = set(dir, "cgroup.procs", strconv.Itoa(pid))
	}
}

// kill ends every process in the group, also those that came meanwhile.
func (g *Group) kill() {
	if g == nil {
		return
	}
	for _, dir := range g.dirs {
		if set(dir, "cgroup.kill", "1") == nil {
			continue
		}
		for range 8 { // a fork may slip through one look, hardly through eight
			raw, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
			if err != nil || len(raw) == 0 {
				break
			}
			for _, line := range strings.Fields(string(raw)) {
				if pid, err := strconv.Atoi(line); err == nil && pid > 1 {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		}
	}
}

func mounted(controller string) bool {
	_, err := os.Stat(filepath.Join(cgroupRoot, controller, "cgroup.procs"))
	return err == nil
}

func limit(dir, file string, value int64) error {
	if value <= 0 {
		return nil
	}
	return set(dir, file, strconv.FormatInt(value, 10))
}

func set(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(value); err != nil {
		return fmt.Errorf("control group %s: %w", dir, err)
	}
	return nil
}
