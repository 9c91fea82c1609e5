package buildkit

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

const (
	// mountPoint is where a daemon of root sees its folder: above the folder there are
	// directories that it may not pass.
	mountPoint = "/run/berth-buildkit"

	// lookInterval is how often the keeper looks for an agent, and lonely how often
	// in a row it may find none: an agent that is started again takes seconds.
	lookInterval = 20 * time.Second
	lonely       = 6

	// quitTimeout is for a daemon that was asked to end.
	quitTimeout = 3 * time.Second
)

// Keep runs a daemon, in the process that the agent starts for that, and returns
// when it ended. file is keep.json. As root it is the first process of new
// namespaces: with it ends all that it started.
func Keep(file string) error {
	runtime.LockOSThread() // the thread that starts the daemon is what it dies with
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var k keep
	if err := json.Unmarshal(raw, &k); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if os.Getpid() == 1 {
		if err := k.mounts(); err != nil {
			return err
		}
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	cmd := k.command()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- reap(cmd.Process.Pid) }()
	select {
	case err := <-ended:
		return err
	case <-stop:
	case <-k.abandoned():
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(quitTimeout):
		_ = cmd.Process.Kill()
	}
	return nil
}

// mounts are those of the keeper's own namespace.
func (k keep) mounts() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("own mounts: %w", err)
	}
	if err := os.MkdirAll(mountPoint, 0o755); err != nil {
		return err
	}
	if err := syscall.Mount(k.State, mountPoint, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("own folder: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("own /proc: %w", err)
	}
	return nil
}

// command is the daemon: as root in a user namespace of its own, else in one that
// rootlesskit makes.
func (k keep) command() *exec.Cmd {
	args := []string{k.Buildkitd, "--config", "buildkitd.toml"}
	dir := k.State
	if k.FirstUID != 0 {
		dir = mountPoint
	} else {
		args = append([]string{k.Rootlesskit, "--net=host", "--pidns", "--copy-up=/run", "--state-dir", filepath.Join(k.State, "rootlesskit")}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // it ends with its keeper
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "HOME="+filepath.Join(dir, "tmp"), "TMPDIR="+filepath.Join(dir, "tmp"), "XDG_RUNTIME_DIR="+filepath.Join(dir, "run"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if k.FirstUID == 0 {
		return cmd
	}
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: k.FirstUID, Size: idMapSize}}
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS
	cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings, cmd.SysProcAttr.GidMappingsEnableSetgroups = ids, ids, true
	cmd.SysProcAttr.Credential = &syscall.Credential{}
	if home, err := os.Open(k.Home); err == nil { // closed with this process
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(home.Fd())
	}
	return cmd
}

// reap waits for a child, and for all those that others left to this process.
func reap(child int) error {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return err
		case pid == child:
			return fmt.Errorf("buildkitd ended with %d (signal %d)", status.ExitStatus(), status.Signal())
		}
	}
}

// abandoned closes when no agent has been there for two minutes.
func (k keep) abandoned() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for alone := 0; alone < lonely; {
			time.Sleep(lookInterval)
			if k.agentLives() {
				alone = 0
			} else {
				alone++
			}
		}
	}()
	return done
}

// agentLives: an agent holds the lock of its data folder.
func (k keep) agentLives() bool {
	f, err := os.Open(k.Lock)
	if err != nil {
		return false
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil {
		return true
	}
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	return false
}
