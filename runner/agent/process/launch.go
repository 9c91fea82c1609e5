package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/berth-dev/berth/runner/agent/launcher"
)

// maxWhy is the most that a launcher says about why there is no engine, in
// bytes.
const maxWhy = 4 << 10

// Launch is an engine that waits to be started: its launcher is there, or on its
// way, in its namespaces and with its limits, and knows nothing yet. It takes some
// milliseconds to get that far, in which an agent has other things to do. An agent
// that dies leaves none behind.
type Launch struct {
	spec         Spec
	cmd          *exec.Cmd
	plan, status *os.File
	used         bool
}

// Prepare starts a launcher for s; its environment counts only at Start. The
// files of s are the caller's again when it returns. Start or Cancel has to follow.
func Prepare(s Spec) (*Launch, error) {
	cmd := s.command()
	planRead, planWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	statusRead, statusWrite, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, planRead.Close(), planWrite.Close())
	}
	cmd.ExtraFiles = append([]*os.File{planRead, statusWrite}, s.Inherit...)
	if s.Isolation.Hidden || s.Isolation.Bare {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC
	}
	if s.Isolation.Hidden && s.ScratchMap != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, s.ScratchMap)
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, s.pathMaps()...)
	if s.Isolation.OwnUsers {
		ownUsers(cmd.SysProcAttr)
		if s.Isolation.Loopback {
			cmd.SysProcAttr.AmbientCaps = append(cmd.SysProcAttr.AmbientCaps, capNetAdmin)
		}
	}
	// Not in the job's folder: there it would keep a way past its own mounts.
	cmd.Path, cmd.Dir, cmd.Args[0], cmd.Env = s.Launcher, "/", launcher.Name, launcher.RaceDetector()
	closeGroup, err := s.Group.attach(cmd.SysProcAttr)
	if err == nil {
		err = cmd.Start()
		closeGroup()
	}
	planRead.Close()
	statusWrite.Close()
	if err != nil {
		return nil, errors.Join(err, planWrite.Close(), statusRead.Close())
	}
	return &Launch{spec: s, cmd: cmd, plan: planWrite, status: statusRead}, nil
}

// Start lets the launcher become the engine, with an environment. An error means
// that no engine began. It belongs to nobody's ctx: see Process.Stop and Kill.
// It is called once, and not after Cancel.
func (l *Launch) Start(env []string) (*Process, error) {
	l.used = true
	defer l.status.Close()
	s := l.spec
	plan := launcher.Plan{
		Path: s.Path, Env: env, Dir: s.Dir, UID: s.Isolation.UID, GID: s.Isolation.GID, Inherit: len(s.Inherit),
		Groups: s.Group.entries(), Parental: !s.Isolation.PIDNamespace, OwnUsers: s.Isolation.OwnUsers, Bare: s.Isolation.Bare, Try: s.try,
		Loopback: s.Isolation.Loopback && s.Isolation.NoNetwork,
	}
	if s.Isolation.Hidden {
		sight := *s.Sight
		if s.ScratchMap != nil {
			sight.ScratchMap = launcher.InheritFD + len(s.Inherit)
		}
		sight.Paths = s.mappedPaths()
		plan.Sight = &sight
	}
	err := json.NewEncoder(l.plan).Encode(plan)
	l.plan.Close() // without a plan it ends
	said, readErr := io.ReadAll(io.LimitReader(l.status, maxWhy))
	err = errors.Join(err, readErr)
	why, ready := strings.CutPrefix(string(said), launcher.Ready)
	switch {
	case err != nil:
	case why != "":
		err = &launchError{why: why}
	case !ready:
		err = errEnded
	default:
		return newProcess(l.cmd, s), nil
	}
	_ = l.cmd.Process.Kill()
	_ = l.cmd.Wait()
	return nil, err
}

// pathMaps are the files of PathMaps that there are.
func (s Spec) pathMaps() []*os.File {
	if !s.Isolation.Hidden {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.PathMaps), func(f *os.File) bool { return f == nil })
}

// mappedPaths are those of the sight, with the descriptors that the launcher finds the
// maps at.
func (s Spec) mappedPaths() []launcher.Path {
	fd := launcher.InheritFD + len(s.Inherit)
	if s.ScratchMap != nil {
		fd++
	}
	paths := slices.Clone(s.Sight.Paths)
	for i, f := range s.PathMaps {
		if f != nil {
			paths[i].Map = fd
			fd++
		}
	}
	return paths
}

// Cancel ends the launcher, unless Start was called, and returns when nothing is
// left of it.
func (l *Launch) Cancel() {
	if l.used {
		return
	}
	l.used = true
	l.plan.Close()
	l.status.Close()
	_ = l.cmd.Process.Kill()
	_ = l.cmd.Wait()
}

// Rights in a user namespace of its own that the launcher works with, by their
// numbers in linux/capability.h.
const (
	capSetPCap     = 8  // to have less
	capNetAdmin    = 12 // to bring up the loopback of an own network
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

// errEnded: something ended the launcher, and it could not say why.
var errEnded = errors.New("the launcher ended before it was the engine")

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
	cmd.Args[0], cmd.Dir, cmd.Env = launcher.Name, "/", launcher.RaceDetector()
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
