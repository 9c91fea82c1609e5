package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"github.com/berth-dev/berth/runner/agent/launcher"
)

// maxWhy is the most that a launcher says about why there is no engine, in
// bytes.
const maxWhy = 4 << 10

// launch starts cmd by way of a launcher. When it returns nil the process is the
// engine; otherwise there is none.
func (s Spec) launch(cmd *exec.Cmd) error {
	planRead, planWrite, err := os.Pipe()
	if err != nil {
		return err
	}
	defer planWrite.Close()
	statusRead, statusWrite, err := os.Pipe()
	if err != nil {
		planRead.Close()
		return err
	}
	defer statusRead.Close()

	plan := launcher.Plan{
		Path: s.Path, Dir: s.Dir, UID: s.Isolation.UID, GID: s.Isolation.GID, Inherit: len(s.Inherit),
		Parental: !s.Isolation.PIDNamespace, OwnUsers: s.Isolation.OwnUsers, Try: s.try,
	}
	cmd.ExtraFiles = append([]*os.File{planRead, statusWrite}, s.Inherit...)
	if s.Isolation.Hidden {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC
		sight := *s.Sight
		if s.ScratchMap != nil {
			sight.ScratchMap = launcher.InheritFD + len(s.Inherit)
			cmd.ExtraFiles = append(cmd.ExtraFiles, s.ScratchMap)
		}
		plan.Sight = &sight
	}
	if s.Isolation.OwnUsers {
		ownUsers(cmd.SysProcAttr)
	}
	// Not in the job's folder: there it would keep a way past its own mounts.
	cmd.Path, cmd.Dir, cmd.Args[0] = s.Launcher, "/", launcher.Name
	err = cmd.Start()
	planRead.Close()
	statusWrite.Close()
	if err != nil {
		return err
	}
	if err = s.Group.add(cmd.Process.Pid); err == nil {
		err = json.NewEncoder(planWrite).Encode(plan)
	}
	planWrite.Close() // without a plan it ends
	why, readErr := io.ReadAll(io.LimitReader(statusRead, maxWhy))
	if err = errors.Join(err, readErr); err == nil && len(why) == 0 {
		return nil
	}
	if err != nil || s.try {
		_ = cmd.Process.Kill()
	}
	_ = cmd.Wait()
	if err == nil {
		err = &launchError{why: string(why)}
	}
	return err
}

// Rights in a user namespace of its own that the launcher works with, by their
// numbers in linux/capability.h.
const (
	capSetPCap     = 8  // to have less
	capSysAdmin    = 21 // to mount
	capSysResource = 24 // to bar further user namespaces
)

// ownUsers has a process begin in a user namespace that has the agent's user and
// no other. A program that is not root's gets no right there of itself.
func ownUsers(attr *syscall.SysProcAttr) {
	attr.Cloneflags |= syscall.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	attr.AmbientCaps = []uintptr{capSetPCap, capSysAdmin, capSysResource}
}

// launchError is what a launcher said.
type launchError struct{ why string }

func (e *launchError) Error() string { return e.why }

// Is recognises the one reason that an agent can do something about.
func (e *launchError) Is(target error) bool {
	return target == launcher.ErrNoIDMap && strings.Contains(e.why, launcher.ErrNoIDMap.Error())
}

// Try does all that Start does but to start the process, and says why it could
// not be.
func Try(s Spec) error {
	s.try = true
	p, err := Start(s)
	if err != nil {
		return err
	}
	<-p.Done()
	if p.ExitCode() != 0 {
		return fmt.Errorf("the launcher ended with exit code %d", p.ExitCode())
	}
	return nil
}

// UserMaps show the files of one user and its group as those of others: each
// map is a user namespace, kept for the next engine of the same user. Safe for
// concurrent use.
type UserMaps struct {
	executable string
	disk       int

	mu   sync.Mutex
	open map[int]*os.File
}

// NewUserMaps returns those of the user that owns files on disk. executable has
// package launcher in it.
func NewUserMaps(executable string, disk int) *UserMaps {
	return &UserMaps{executable: executable, disk: disk, open: map[int]*os.File{}}
}

// For returns the map that shows the files as those of a user, open until Close.
func (m *UserMaps) For(shown int) (*os.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.open[shown]; f != nil {
		return f, nil
	}
	f, err := userMap(m.executable, m.disk, shown)
	if err == nil {
		m.open[shown] = f
	}
	return f, err
}

// Owner is the user that owns the files on disk.
func (m *UserMaps) Owner() int { return m.disk }

// Close forgets all maps.
func (m *UserMaps) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, f := range m.open {
		errs = append(errs, f.Close())
	}
	clear(m.open)
	return errors.Join(errs...)
}

func userMap(executable string, disk, shown int) (*os.File, error) {
	planRead, planWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer planWrite.Close()
	// A launcher that never gets a plan: somebody has to be in a namespace until
	// it is held open.
	cmd := exec.Command(executable) //nolint:noctx // it is ended below
	cmd.Args[0], cmd.Dir, cmd.Env = launcher.Name, "/", []string{}
	cmd.ExtraFiles = []*os.File{planRead}
	owner := []syscall.SysProcIDMap{{ContainerID: disk, HostID: shown, Size: 1}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: owner, GidMappings: owner}
	err = cmd.Start()
	planRead.Close()
	if err != nil {
		return nil, fmt.Errorf("user namespace: %w", err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid))
	if err != nil {
		return nil, fmt.Errorf("user namespace: %w", err)
	}
	return f, nil
}
