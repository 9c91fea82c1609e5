package action

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
	job   *job.Job
	place string // where programs are looked for, for errors
	// sh is what scripts for sh run under: bash, in an image without it the image's
	// sh. Both are "" in an image that has none.
	sh, bash string
	// bin is a directory in which sh is that; it comes first in the PATH of
	// scripts, for those that start others.
	bin string
	dir string // where scripts work
}

// newShell looks for the shells of the image, "" for the runner's own place.
func newShell(j *job.Job, image string) (shell, error) {
	s := shell{job: j, place: "on the runner's machine", bin: j.Work("bin"), dir: j.Work("action")}
	if image != "" {
		s.place = "in image " + image
	}
	s.bash = found("bash")
	s.sh = s.bash
	if s.bash == "" {
		if image == "" {
			return shell{}, job.Refusef("install bash on the runner's machine", "%s: the runner has no bash", j.Subject())
		}
		s.sh = found("sh")
	}
	if err := errors.Join(os.MkdirAll(s.bin, 0o700), os.MkdirAll(s.dir, 0o700)); err != nil {
		return shell{}, err
	}
	if s.sh == "" {
		return s, nil
	}
	if err := os.Symlink(s.sh, filepath.Join(s.bin, "sh")); err != nil && !errors.Is(err, os.ErrExist) {
		return shell{}, err
	}
	return s, nil
}

// found is the path of a program, "" when there is none.
func found(name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	if path, err = filepath.Abs(path); err != nil {
		return ""
	}
	return path
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
		return s.plain(script)
	}
	words := strings.Fields(line)
	if len(words) > 1 && filepath.Base(words[0]) == "env" {
		words = words[1:]
		if words[0] == "-S" {
			words = words[1:]
		}
	}
	if len(words) == 0 {
		return s.plain(script)
	}
	name := filepath.Base(words[0])
	switch {
	case slices.Contains([]string{"sh", "dash", "ash"}, name) && s.sh != "":
		path = filepath.Join(s.bin, "sh")
	case name == "bash" && s.bash != "":
		path = s.bash
	default:
		if path, err = exec.LookPath(words[0]); err != nil {
			return "", nil, fmt.Errorf("there is no %s %s", name, s.place)
		}
	}
	return path, append(words[1:], script), nil
}

// plain is how a script without a first line is started. Without any shell it can
// be a program with its arguments, if these mean the same to every shell.
func (s shell) plain(script string) (path string, args []string, err error) {
	if s.sh != "" {
		return s.sh, []string{script}, nil
	}
	text, err := os.ReadFile(script)
	if err != nil {
		return "", nil, err
	}
	words := plainWords(string(text))
	if words == nil {
		return "", nil, fmt.Errorf("there is neither bash nor sh %s: a step can only be a command there, of a program and plain arguments", s.place)
	}
	path = words[0]
	switch {
	case filepath.IsAbs(path):
	case strings.Contains(path, "/"):
		path = filepath.Join(s.dir, path)
	default:
		if path, err = exec.LookPath(path); err != nil {
			return "", nil, fmt.Errorf("there is no %s %s, and no shell", words[0], s.place)
		}
	}
	return path, words[1:], nil
}

// plainWord is a word in which no shell sees anything else.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,=-]+$`)

// plainWords takes a command apart that needs no shell, nil for any other.
func plainWords(command string) []string {
	words := strings.Fields(command)
	if len(words) == 0 || strings.ContainsAny(strings.TrimSpace(command), "\n\r") || strings.Contains(words[0], "=") {
		return nil
	}
	for _, word := range words {
		if !plainWord.MatchString(word) {
			return nil
		}
	}
	return words
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
