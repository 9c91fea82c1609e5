package step

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// inside marks the process that becomes runc.
const inside = "--inside"

// nice is how much less of the processors a step gets than what else runs.
const nice = 10

// Main is the program that BuildKit takes for runc; args are without its name. It
// returns an exit code.
func Main(args []string) int {
	self, err := os.Executable()
	if err != nil {
		return fail(err)
	}
	limits, err := read(filepath.Join(filepath.Dir(self), File))
	if err != nil {
		return fail(err)
	}
	switch {
	case len(args) > 1 && args[0] == inside:
		return fail(limits.enter(strings.Split(args[1], ":"), args[2:]))
	case !slices.Contains(args, "run"):
		return fail(syscall.Exec(limits.Runc, append([]string{limits.Runc}, args...), os.Environ()))
	}
	return limits.run(self, args)
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "berth: "+err.Error())
	return 1
}

// run has a step run under its limits, and waits for it.
func (l Limits) run(self string, args []string) int {
	dirs, err := l.of(filepath.Base(args[len(args)-1]))
	defer Remove(dirs)
	if err != nil {
		return fail(fmt.Errorf("limits of this step: %w", err))
	}
	cmd := exec.Command(self, append([]string{inside, strings.Join(dirs, ":")}, args...)...) //nolint:noctx // BuildKit ends it
	cmd.Args[0] = Name
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGWINCH)
	if err := cmd.Start(); err != nil {
		return fail(err)
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	err = cmd.Wait()
	code := cmd.ProcessState.ExitCode()
	if code < 0 { // by a signal
		const bySignal = 128
		code = bySignal + int(syscall.SIGKILL)
	}
	if why := l.Reason(code, used(dirs)); why != "" {
		fmt.Fprintln(os.Stderr, "berth: "+why)
	} else if err != nil && !errors.As(err, new(*exec.ExitError)) {
		return fail(err)
	}
	return code
}

// enter joins the groups, takes the limits and becomes runc.
func (l Limits) enter(dirs, args []string) error {
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
			return fmt.Errorf("limits of this step: %w", err)
		}
	}
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, nice); err != nil {
		return fmt.Errorf("limits of this step: %w", err)
	}
	for which, most := range l.perProcess() {
		var now syscall.Rlimit
		if err := syscall.Getrlimit(which, &now); err != nil {
			return fmt.Errorf("limits of this step: %w", err)
		}
		most = min(most, now.Max)
		if err := syscall.Setrlimit(which, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("limits of this step: %w", err)
		}
	}
	return syscall.Exec(l.Runc, append([]string{l.Runc}, args...), os.Environ())
}

// Remove deletes groups, with those that were made in them, once what ran in them is
// gone.
func Remove(dirs []string) {
	const tries, pause = 20, 10 * time.Millisecond // a process that ended is in its group until it is reaped
	for _, dir := range dirs {
		for range tries {
			var inner []string
			_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
				if err == nil && e.IsDir() {
					inner = append(inner, path)
				}
				return nil
			})
			slices.Reverse(inner)
			left := false
			for _, d := range inner {
				left = syscall.Rmdir(d) != nil || left
			}
			if !left {
				break
			}
			time.Sleep(pause)
		}
	}
}
