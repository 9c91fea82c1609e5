// Package process starts engines, finds them again, waits for them and ends
// them: one process tree per attempt, isolated as far as the machine allows.
//
// As root an engine runs as another user, as the first process of a PID
// namespace of its own, and sees of the machine's files what package launcher
// leaves it. Whatever it starts dies with it, and it lives on when the agent
// dies: the next agent adopts it. Without root all that happens in a user
// namespace, or, where the machine gives none, an engine shares the agent's user
// and is asked to stop when the agent dies.
//
// The package knows nothing of jobs. It is for Linux.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/pkg/procstat"
	"github.com/berth-dev/berth/runner/agent/launcher"
)

// Isolation is how engines are kept apart from the agent.
type Isolation struct {
	// UID and GID are the engine's user; 0 means the agent's own.
	UID, GID int
	// PIDNamespace gives each engine a process namespace.
	PIDNamespace bool
	// Hidden: it sees of the agent's files those of its job, by mounts of its
	// own.
	Hidden bool
	// OwnUsers: it has a user namespace of its own with the agent's user in it.
	// That needs no root, and is what lets Hidden do without.
	OwnUsers bool `json:",omitempty"`
	// NoNetwork gives it a network namespace of its own in which nothing is up.
	NoNetwork bool `json:",omitempty"`
	// Loopback brings up the loopback of that namespace, so that a process in it can
	// listen for its own children.
	Loopback bool `json:",omitempty"`
	// Bare: it sees no file at all, its own executable included. That needs one that
	// is linked statically.
	Bare bool `json:",omitempty"`
}

// OwnUser tells whether each engine has a user that nobody else has.
func (i Isolation) OwnUser() bool { return i.Hidden && i.UID == 0 && !i.OwnUsers }

// Spec is what to start.
type Spec struct {
	Path string
	Args []string // without the name of the executable
	Dir  string
	// Env is all that the process sees of the environment.
	Env []string
	// Stdin is what it reads; nil for nothing.
	Stdin          *os.File
	Stdout, Stderr *os.File
	// Inherit are further files that the process and its children keep open:
	// locks, so that these are held as long as any of them lives.
	Inherit   []*os.File
	Isolation Isolation
	Group     *Group // nil: no limits

	// Launcher is the executable that becomes the engine: one that has package
	// launcher in it. Without one, a process cannot be given another user, a
	// sight, or the limits of control groups v1.
	Launcher string
	// Sight is what an engine sees with Isolation.Hidden, and ScratchMap how its
	// scratch appears as its own, see UserMap; nil: as it is on disk.
	Sight      *launcher.Sight
	ScratchMap *os.File
	// PathMaps are the same for paths of the sight, by their place in the list; nil: as
	// they are on disk.
	PathMaps []*os.File
	// try has the launcher do all but start the process.
	try bool
}

// ID names a process permanently: the system reuses numbers, start times and
// boots are not.
type ID struct {
	PID       int    `json:"pid"`
	StartTime uint64 `json:"start_time"` // clock ticks after boot
	BootID    string `json:"boot_id"`
}

// Process is an engine that runs or has run.
type Process struct {
	id    ID
	own   *exec.Cmd // nil when adopted
	iso   Isolation
	group *Group

	mu    sync.Mutex
	pidfd int // of an adopted process; -1 for children and after the end

	done chan struct{}
	code int // valid after done; -1 when it is not known
}

// Start starts a process. It belongs to nobody's ctx: see Stop and Kill. An
// error means that it did not begin.
func Start(s Spec) (*Process, error) {
	if s.Launcher != "" {
		l, err := Prepare(s)
		if err != nil {
			return nil, err
		}
		return l.Start(s.Env)
	}
	if s.Isolation.UID != 0 || s.Isolation.Hidden || s.Isolation.Bare || s.Isolation.OwnUsers || s.Isolation.Loopback || s.Group.late() {
		return nil, errors.New("this isolation needs a launcher")
	}
	cmd := s.command()
	cmd.Dir, cmd.Env, cmd.ExtraFiles = s.Dir, s.Env, s.Inherit
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	closeGroup, err := s.Group.attach(cmd.SysProcAttr)
	if err != nil {
		return nil, err
	}
	defer closeGroup()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return newProcess(cmd, s), nil
}

// command is what starts the process, or its launcher.
func (s Spec) command() *exec.Cmd {
	cmd := exec.Command(s.Path, s.Args...) //nolint:noctx // it outlives the agent on purpose
	cmd.Stdout, cmd.Stderr = s.Stdout, s.Stderr
	if s.Stdin != nil { // an interface that holds no file is not nil
		cmd.Stdin = s.Stdin
	}
	// A session of its own: no terminal's signal reaches it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if s.Isolation.PIDNamespace {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID
	} else {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
	}
	if s.Isolation.NoNetwork {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNET
	}
	return cmd
}

// IDOf names a process that cannot have been reaped yet.
func IDOf(pid int) ID {
	id := ID{PID: pid, BootID: bootID()}
	id.StartTime, _ = procstat.StartTime(pid)
	return id
}

// newProcess is one that has begun.
func newProcess(cmd *exec.Cmd, s Spec) *Process {
	p := &Process{own: cmd, pidfd: -1, iso: s.Isolation, group: s.Group, done: make(chan struct{}), code: -1}
	p.id = IDOf(cmd.Process.Pid)
	go p.reap()
	return p
}

func (p *Process) reap() {
	var info unix.Siginfo
	for { // look without reaping, so that the group's number cannot be given to others yet
		err := unix.Waitid(unix.P_PID, p.id.PID, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	p.killRest()
	_ = p.own.Wait()
	p.code = p.own.ProcessState.ExitCode()
	close(p.done)
}

// Adopt takes over a process that an earlier agent started. found is false when
// it does not live any more.
func Adopt(id ID, iso Isolation, group *Group) (p *Process, found bool, err error) {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("adopt process %d: %w", id.PID, err)
	}
	if !Alive(id) { // asked after the descriptor was taken: it is this one or none
		_ = unix.Close(fd)
		return nil, false, nil
	}
	p = &Process{id: id, pidfd: fd, iso: iso, group: group, done: make(chan struct{}), code: -1}
	go p.watch(fd)
	return p, true, nil
}

func (p *Process) watch(fd int) {
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	p.killRest()
	p.mu.Lock()
	_ = unix.Close(p.pidfd)
	p.pidfd = -1
	p.mu.Unlock()
	close(p.done)
}

// ID names the process.
func (p *Process) ID() ID { return p.id }

// Done is closed when the process, and all that it started, is over.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitCode is known after Done, but not of adopted processes: -1.
func (p *Process) ExitCode() int { return p.code }

// Stop asks the process to stop at its next safe point, and ends it when it did
// not within grace. It returns at once; Done tells the rest.
func (p *Process) Stop(grace time.Duration) {
	p.signal(unix.SIGTERM)
	timer := time.AfterFunc(grace, p.Kill)
	go func() {
		<-p.done
		timer.Stop()
	}()
}

// Kill ends the process and all that it started.
func (p *Process) Kill() {
	p.signal(unix.SIGKILL)
	if !p.iso.PIDNamespace {
		_ = unix.Kill(-p.id.PID, unix.SIGKILL)
	}
	p.group.kill()
}

func (p *Process) signal(s unix.Signal) {
	if p.own != nil {
		_ = p.own.Process.Signal(s)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pidfd >= 0 {
		_ = unix.PidfdSendSignal(p.pidfd, s, nil, 0)
	}
}

// killRest ends what the process left behind. In a namespace the kernel does.
func (p *Process) killRest() {
	if !p.iso.PIDNamespace {
		_ = unix.Kill(-p.id.PID, unix.SIGKILL)
	}
	p.group.kill()
}
