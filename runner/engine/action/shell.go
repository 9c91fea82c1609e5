package action

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/berth-dev/berth/runner/engine/job"
)

// stopGrace is how long a script may take to end after SIGTERM, before its
// whole process group is killed.
const stopGrace = 15 * time.Second

// shell runs the scripts of a job.
type shell struct {
	job  *job.Job
	bash string
	// bin is a directory in which sh is bash; it comes first in the PATH of
	// scripts, for those that start others.
	bin string
	dir string // where scripts work
}

func newShell(j *job.Job) (shell, error) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		return shell{}, job.Refusef("install bash on the runner's machine", "%s: the runner has no bash", j.Subject())
	}
	if bash, err = filepath.Abs(bash); err != nil {
		return shell{}, err
	}
	s := shell{job: j, bash: bash, bin: j.Work("bin"), dir: j.Work("action")}
	if err := errors.Join(os.MkdirAll(s.bin, 0o700), os.MkdirAll(s.dir, 0o700)); err != nil {
		return shell{}, err
	}
	if err := os.Symlink(bash, filepath.Join(s.bin, "sh")); err != nil && !errors.Is(err, os.ErrExist) {
		return shell{}, err
	}
	return s, nil
}

// command is how a script is started, by its first line: for sh and bash, and
// without a first line, it is given to the shell; any other interpreter is
// started as the line says.
func (s shell) command(script string) (path string, args []string, err error) {
	f, err := os.Open(script)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	const longestLine = 256 // what Linux reads of it
	head := make([]byte, longestLine)
	n, _ := f.Read(head)
	first, _, _ := bytes.Cut(head[:n], []byte("\n"))
	line, ok := strings.CutPrefix(string(first), "#!")
	if !ok {
		return s.bash, []string{script}, nil
	}
	words := strings.Fields(line)
	if len(words) > 1 && filepath.Base(words[0]) == "env" {
		words = words[1:]
		if words[0] == "-S" {
			words = words[1:]
		}
	}
	if len(words) == 0 {
		return s.bash, []string{script}, nil
	}
	switch name := filepath.Base(words[0]); name {
	case "sh", "dash", "ash":
		return filepath.Join(s.bin, "sh"), append(words[1:], script), nil
	case "bash":
		return s.bash, append(words[1:], script), nil
	default:
		path, err := exec.LookPath(words[0])
		if err != nil {
			return "", nil, fmt.Errorf("there is no %s on the runner's machine", name)
		}
		return path, append(words[1:], script), nil
	}
}

// run runs a script to its end and returns its exit code, 128+n after signal n
// as shells say it. Its output goes to the log directly. Nothing that it left
// running in its process group outlives it.
func (s shell) run(ctx context.Context, script string, env map[string]string) (int, error) {
	path, args, err := s.command(script)
	if err != nil {
		return 127, err
	}
	cmd := exec.Command(path, args...) //nolint:noctx // a script is asked to end, not killed, when ctx ends
	cmd.Dir, cmd.Env = s.dir, job.Environ(env)
	cmd.Stdout, cmd.Stderr = s.job.Stdout, s.job.Stderr
	cmd.SysProcAttr = groupAttr()
	if err := cmd.Start(); err != nil {
		return 126, err
	}
	group := -cmd.Process.Pid
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()

	stopped := false
	select {
	case err = <-done:
	case <-ctx.Done():
		stopped = true
		_ = syscall.Kill(group, syscall.SIGTERM)
		grace := time.NewTimer(stopGrace)
		defer grace.Stop()
		select {
		case err = <-done:
		case <-grace.C:
			_ = syscall.Kill(group, syscall.SIGKILL)
			err = <-done
		}
	}
	_ = syscall.Kill(group, syscall.SIGKILL)
	code, err := exitCode(cmd, err)
	if err == nil && stopped && code != 0 {
		err = fmt.Errorf("ended with exit code %d when it was stopped", code)
	}
	return code, err
}

func exitCode(cmd *exec.Cmd, err error) (int, error) {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 126, err
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}
