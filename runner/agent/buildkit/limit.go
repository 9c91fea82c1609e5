package buildkit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/pkg/durable"
	"github.com/berth-dev/berth/runner/agent/buildkit/step"
)

// maxStepFile is the largest file that a RUN step may write, in bytes.
const maxStepFile = 16 << 30

// limit writes down what RUN steps may use, and puts next to it what BuildKit calls
// in the place of runc. home is the control group of the daemon itself, "" for none.
func (s *Service) limit(k keep) (home string, err error) {
	dir := filepath.Join(k.State, "bin")
	l := step.Limits{Runc: k.Runc, Memory: s.cfg.StepMemory, PIDs: s.cfg.StepPIDs, FileBytes: maxStepFile}
	if l.Memory == 0 {
		l.Memory = max(leastMemory, memoryOfMachine()/2)
	}
	if l.PIDs == 0 {
		l.PIDs = defaultPIDs
	}
	if k.FirstUID != 0 { // only root can give groups away
		l.Groups, home = s.groups(k.FirstUID)
	}
	s.cfg.Log.Info("limits of RUN steps", "held", l.Held())
	self, err := os.Stat(s.cfg.Executable)
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, step.Name)
	if have, err := os.Stat(program); err != nil || have.Size() != self.Size() || !have.ModTime().Equal(self.ModTime()) {
		if err := copyFile(s.cfg.Executable, program, self.ModTime()); err != nil {
			return "", err
		}
	}
	raw, err := json.Marshal(l)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, step.File)
	return home, errors.Join(durable.WriteFile(file, raw, 0o644), os.Chmod(file, 0o644))
}

// memoryOfMachine is in bytes.
func memoryOfMachine() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}

// cgroups is where control groups are mounted, everywhere.
const cgroups = "/sys/fs/cgroup"

// groups makes directories of control groups in which the daemon's user may make
// those of steps: one for each limit where hierarchies are apart (v1), or one for all
// (v2), with a group next to it for the daemon. A limit that cannot be had so has no
// directory.
func (s *Service) groups(uid int) (made []step.Group, home string) {
	dropGroups(uid) // what a daemon that was killed has left
	name := groupName(uid)
	if _, err := os.Stat(filepath.Join(cgroups, "cgroup.controllers")); err == nil {
		parent := filepath.Join(cgroups, "berth")
		dir := filepath.Join(parent, name)
		home = filepath.Join(dir, "daemon")
		err := os.MkdirAll(home, 0o755)
		for _, at := range []string{cgroups, parent, dir} {
			if err == nil {
				// One that is enabled already need not be; whether it is shows below.
				_ = os.WriteFile(filepath.Join(at, "cgroup.subtree_control"), []byte("+memory +pids"), 0)
			}
		}
		try := filepath.Join(dir, "step-try")
		_ = os.Mkdir(try, 0o755)
		for _, file := range []string{"memory.max", "pids.max"} {
			if _, statErr := os.Stat(filepath.Join(try, file)); err == nil {
				err = statErr
			}
		}
		_ = os.Remove(try)
		if err = errors.Join(err, own(dir, uid), own(home, uid)); err != nil {
			s.cfg.Log.Warn("RUN steps have no control groups", "err", err)
			return nil, ""
		}
		return []step.Group{{Dir: dir, Memory: "memory.max", PIDs: "pids.max"}}, home
	}
	for _, g := range []struct {
		controller string
		step.Group
	}{{"memory", step.Group{Memory: "memory.limit_in_bytes"}}, {"pids", step.Group{PIDs: "pids.max"}}} {
		hierarchy := filepath.Join(cgroups, g.controller)
		if _, err := os.Stat(filepath.Join(hierarchy, "cgroup.procs")); err != nil {
			continue
		}
		g.Dir = filepath.Join(hierarchy, "berth", name)
		if err := errors.Join(os.MkdirAll(g.Dir, 0o755), own(g.Dir, uid)); err != nil {
			s.cfg.Log.Warn("RUN steps have no control groups", "controller", g.controller, "err", err)
			continue
		}
		made = append(made, g.Group)
	}
	return made, ""
}

func groupName(uid int) string { return "builds-" + strconv.Itoa(uid) }

// dropGroups removes the groups of a daemon that is gone.
func dropGroups(uid int) {
	for _, hierarchy := range []string{"", "memory", "pids"} {
		dir := filepath.Join(cgroups, hierarchy, "berth", groupName(uid))
		if _, err := os.Stat(dir); err == nil {
			step.Remove([]string{dir})
		}
	}
}

// own gives a group to the daemon's user: to make others in it, and to move its own
// processes among them; its limits stay root's.
func own(dir string, uid int) error {
	err := os.Chown(dir, uid, uid)
	for _, file := range []string{"cgroup.procs", "cgroup.subtree_control"} {
		if chownErr := os.Chown(filepath.Join(dir, file), uid, uid); chownErr != nil && !errors.Is(chownErr, os.ErrNotExist) {
			err = errors.Join(err, chownErr)
		}
	}
	if err != nil {
		return fmt.Errorf("control group %s: %w", dir, err)
	}
	return nil
}
