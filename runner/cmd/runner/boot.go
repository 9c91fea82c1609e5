package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/berth-dev/berth/pkg/version"
	"github.com/berth-dev/berth/runner/agent"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/versions"
)

// The executable that is installed starts every other version: this file is small, and
// what it decides is versions.Decide.
//
//	installed ─▶ decide ─┬─▶ is the agent itself
//	    ▲                ├─▶ becomes the current version (exec)
//	    │                └─▶ watches the version on trial, its child, for trialTime
//	    └── exec, exitUpdated: another version is to run ◀──┘

// Environment between the installed executable and the version that it starts.
const (
	envFolder    = "BERTH_RUNNER_VERSION_FOLDER" // of the version
	envInstalled = "BERTH_RUNNER_INSTALLED"      // path of the installed executable
	envPackage   = "BERTH_RUNNER_PACKAGE"        // its version
	envOnTrial   = "BERTH_RUNNER_ON_TRIAL"       // set for the one that is watched
	envWatched   = "BERTH_RUNNER_WATCHED"        // set while the installed executable waits
)

const (
	// trialTime is how long a version may take to show that it works.
	trialTime = 60 * time.Second
	// exitUpdated tells the installed executable that another version is to run.
	exitUpdated = 8
)

// launcher is the installed executable at its start.
type launcher struct {
	store     versions.Store
	installed string // its path
	trialTime time.Duration
	log       *slog.Logger
}

// started is what an executable is told of the version that it is, taken out of the
// environment so that nothing it starts takes it for itself.
func started() (u agent.UpdateConfig, watched bool) {
	u = agent.UpdateConfig{
		Installed: os.Getenv(envPackage), InstalledPath: os.Getenv(envInstalled), Folder: os.Getenv(envFolder), OnTrial: os.Getenv(envOnTrial) != "",
	}
	watched = os.Getenv(envWatched) != ""
	for _, name := range []string{envFolder, envInstalled, envPackage, envOnTrial, envWatched} {
		_ = os.Unsetenv(name)
	}
	return u, watched
}

// boot runs the version that is to run. own: that is this executable. Otherwise it
// returns the exit code of the version that it watched, or does not return.
func (l launcher) boot(ctx context.Context) (own bool, code int) {
	last := ""
	for {
		state, err := l.store.Read()
		if err != nil {
			l.log.ErrorContext(ctx, "versions of the runner cannot be read, the installed one runs", "err", err)
			return true, 0
		}
		switch d := versions.Decide(state, version.Get().Version); d.Run {
		case versions.RunTrial:
			l.log.InfoContext(ctx, "starting a version on trial", "version", state.Trial.Version.Version, "boot", state.Trial.Boots+1, "time", l.trialTime)
			ended, err := l.try(ctx, *state.Trial)
			if errors.Is(err, datadir.ErrBusy) {
				return false, exitBusy
			}
			if err != nil {
				last = err.Error()
				if err := l.fail(ctx, state.Trial.Version, last); err != nil {
					return true, 0
				}
				continue
			}
			switch {
			case ctx.Err() != nil || ended.confirmed && ended.code != exitUpdated && !ended.timedOut:
				return false, ended.code
			case !ended.confirmed && !ended.timedOut:
				last = fmt.Sprintf("it ended with exit code %d before it could take work", ended.code)
				l.log.WarnContext(ctx, "the version on trial ended", "version", state.Trial.Version.Version, "exit_code", ended.code)
			}
		case versions.GiveUp:
			if last == "" {
				last = d.Reason
			}
			if err := l.fail(ctx, state.Trial.Version, last); err != nil {
				return true, 0
			}
		case versions.RunCurrent:
			err := l.become(*state.Current)
			l.log.ErrorContext(ctx, "the current version cannot be started, the installed one runs", "version", state.Current.Version, "err", err)
			return true, 0
		default:
			return true, 0
		}
	}
}

// fail ends a trial. Where that cannot be written, the installed version runs until
// the next start: a runner that cannot write takes no work, and says so.
func (l launcher) fail(ctx context.Context, v versions.Version, reason string) error {
	l.log.ErrorContext(ctx, "the trial has failed, the version before runs", "version", v.Version, "reason", reason)
	err := l.store.Fail(v.Digest(), reason, time.Now())
	if err != nil && !errors.Is(err, versions.ErrNotOnTrial) {
		l.log.ErrorContext(ctx, "the end of the trial cannot be written, the installed version runs", "err", err)
		return err
	}
	return nil
}

// become makes this process the current version. It returns only when that cannot be.
func (l launcher) become(v versions.Version) error {
	if err := l.store.Verify(v); err != nil {
		return err
	}
	path := filepath.Join(l.store.Folder(v), versions.RunnerName)
	return syscall.Exec(path, append([]string{path}, os.Args[1:]...), l.environ(v))
}

func (l launcher) environ(v versions.Version, also ...string) []string {
	env := append(os.Environ(), envFolder+"="+l.store.Folder(v), envInstalled+"="+l.installed, envPackage+"="+version.Get().Version)
	return append(env, also...)
}

// ended is how a version on trial ended.
type ended struct {
	code      int
	confirmed bool // it had passed its trial
	timedOut  bool // it did not in time, and the trial has failed
}

// try runs a version as a child until it ends, and ends it when it has not passed its
// trial in time. It is a child because a program that hangs ends nothing by itself.
// Whatever this process has inherited besides is reaped.
func (l launcher) try(ctx context.Context, t versions.Trial) (ended, error) {
	if err := l.store.Verify(t.Version); err != nil {
		return ended{}, err
	}
	watching, err := l.store.Watch(datadir.ErrBusy)
	if err != nil {
		return ended{}, err
	}
	defer watching.Close()
	if err := l.store.Boot(); err != nil {
		return ended{}, err
	}
	path := filepath.Join(l.store.Folder(t.Version), versions.RunnerName)
	cmd := exec.Command(path, os.Args[1:]...) //nolint:noctx // it is asked to stop, and waited for
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = l.environ(t.Version, envOnTrial+"=1", envWatched+"=1")
	// It dies with this process, whose thread must last for that. A signal of a
	// terminal comes once, from here.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return ended{}, err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	timedOut := make(chan bool, 1)
	timer := time.AfterFunc(l.trialTime, func() {
		timedOut <- l.outOfTime(ctx, t, cmd.Process)
	})
	code := reapUntil(cmd.Process.Pid)
	end := ended{code: code}
	if !timer.Stop() {
		end.timedOut = <-timedOut
	}
	state, err := l.store.Read()
	if err != nil {
		return end, err
	}
	outcome, _ := versions.OutcomeOf(state, t.Job)
	end.confirmed = outcome == versions.Confirmed
	if ctx.Err() != nil && outcome == versions.OnTrial {
		return end, l.store.Uncount() // somebody stopped the runner: that says nothing of the version
	}
	return end, nil
}

// outOfTime fails the trial of a version that has not passed it, and ends it.
func (l launcher) outOfTime(ctx context.Context, t versions.Trial, p *os.Process) bool {
	err := l.store.Fail(t.Digest(), fmt.Sprintf("it could not take work within %s", l.trialTime), time.Now())
	if errors.Is(err, versions.ErrNotOnTrial) {
		return false // it has passed
	}
	if err != nil {
		l.log.ErrorContext(ctx, "the end of the trial cannot be written", "err", err)
	}
	l.log.ErrorContext(ctx, "the version on trial did not take work in time, the version before runs", "version", t.Version.Version, "time", l.trialTime)
	_ = p.Kill()
	return true
}

// reapUntil waits for the child, and for whatever else this process has become the
// parent of, such as engines of the agent that it was before.
func reapUntil(pid int) (code int) {
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return exitFailed // it has no child any more
		case got != pid:
		case status.Signaled():
			return 128 + int(status.Signal())
		default:
			return status.ExitStatus()
		}
	}
}

// again has the installed executable decide once more: this process becomes it, or
// tells it so where it waits.
func again(u agent.UpdateConfig, watched bool, own string) error {
	if watched {
		return errUpdated
	}
	path := own
	if u.InstalledPath != "" {
		path = u.InstalledPath
	}
	return fmt.Errorf("start %s again: %w", path, syscall.Exec(path, append([]string{path}, os.Args[1:]...), os.Environ()))
}

// errUpdated ends a watched version with exitUpdated.
var errUpdated = errors.New("another version of the runner is to run")
