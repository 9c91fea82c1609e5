package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
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

// bound is a limit as the kernel takes it.
type bound struct {
	controller string // its hierarchy, in v1
	file       string
	value      int64
}

func unified() bool {
	_, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers"))
	return err == nil
}

// bounds are the limits that are set, by the files of this machine.
func (l Limits) bounds(v2 bool) []bound {
	memory := "memory.limit_in_bytes"
	if v2 {
		memory = "memory.max"
	}
	var all []bound
	for _, b := range []bound{{"memory", memory, l.MemoryBytes}, {"pids", "pids.max", l.PIDs}} {
		if b.value > 0 {
			all = append(all, b)
		}
	}
	return all
}

// NewGroup makes the group called name, or finds it again, and sets its limits.
// It fails unless all of them are set: an engine must not run as if they were.
// Without limits there is no group.
func NewGroup(name string, l Limits) (*Group, error) {
	v2 := unified()
	bounds := l.bounds(v2)
	if len(bounds) == 0 {
		return nil, nil
	}
	g := &Group{v2: v2}
	if v2 {
		parent := filepath.Join(cgroupRoot, "berth")
		g.dirs = []string{filepath.Join(parent, name)}
		if err := os.MkdirAll(parent, 0o755); err != nil {
			return nil, fmt.Errorf("control group: %w", err)
		}
		// What is enabled already, or cannot be, shows when the limit is written.
		_ = set(cgroupRoot, "cgroup.subtree_control", "+memory +pids")
		_ = set(parent, "cgroup.subtree_control", "+memory +pids")
	}
	for _, b := range bounds {
		if !v2 {
			if !mounted(b.controller) {
				return nil, errors.Join(fmt.Errorf("control groups of this machine have no %s controller", b.controller), g.remove())
			}
			g.dirs = append(g.dirs, filepath.Join(cgroupRoot, b.controller, "berth", name))
		}
		dir := g.dirs[len(g.dirs)-1]
		err := os.MkdirAll(dir, 0o755)
		if err == nil {
			err = set(dir, b.file, strconv.FormatInt(b.value, 10))
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("control group: %w", err), g.remove())
		}
	}
	return g, nil
}

// FindGroup returns the group called name as far as it exists; nil when it does
// not.
func FindGroup(name string) *Group {
	g := &Group{v2: unified()}
	candidates := []string{filepath.Join(cgroupRoot, "berth", name)}
	if !g.v2 {
		candidates = []string{filepath.Join(cgroupRoot, "memory", "berth", name), filepath.Join(cgroupRoot, "pids", "berth", name)}
	}
	for _, dir := range candidates {
		if _, err := os.Stat(dir); err == nil {
			g.dirs = append(g.dirs, dir)
		}
	}
	if len(g.dirs) == 0 {
		return nil
	}
	return g
}

// CanLimit finds out by trying whether this machine can hold an engine to the
// limits.
func CanLimit(l Limits) error {
	g, err := NewGroup(fmt.Sprintf("try-%d-%d", os.Getpid(), time.Now().UnixNano()), l)
	if err != nil {
		return err
	}
	g.Remove()
	return nil
}

// removeAgain is how much later a group is tried again that cannot be removed:
// an adopted process is over before somebody else has reaped it.
const removeAgain = 200 * time.Millisecond

// Remove deletes the group; nothing runs in it any more.
func (g *Group) Remove() {
	if g.remove() != nil {
		time.AfterFunc(removeAgain, func() { _ = g.remove() })
	}
}

func (g *Group) remove() error {
	if g == nil {
		return nil
	}
	var errs []error
	for _, dir := range g.dirs {
		if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// attach lets the process be born in the group, where the kernel can do that.
func (g *Group) attach(attr *syscall.SysProcAttr) (done func(), err error) {
	if g == nil || !g.v2 {
		return func() {}, nil
	}
	f, err := os.Open(g.dirs[0])
	if err != nil {
		return nil, fmt.Errorf("control group: %w", err)
	}
	attr.UseCgroupFD, attr.CgroupFD = true, int(f.Fd())
	return func() { f.Close() }, nil
}

// late: processes are not born in the group, but join it.
func (g *Group) late() bool { return g != nil && !g.v2 }

// entries are the files by which a launcher joins the group, where it was not
// born in it (v1). The agent could move it there, but for others than the caller
// the kernel waits until all processors were idle once: 10 ms, or more.
func (g *Group) entries() []string {
	if !g.late() {
		return nil
	}
	var files []string
	for _, dir := range g.dirs {
		files = append(files, filepath.Join(dir, "tasks"))
	}
	return files
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
