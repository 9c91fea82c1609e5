package buildkit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Solve is one build.
type Solve struct {
	// Command is buildctl, Address where the daemon is. "unix:NAME" is a
	// socket in Dir: the path of a socket must be short.
	Command, Address, Dir string
	// TLS is a directory with ca.pem, cert.pem and key.pem, "" for none.
	TLS string
	// Env is all of the environment of buildctl.
	Env []string

	// Context is the directory that the build sees; Dockerfile is a file, alone in its
	// directory but for a .dockerignore of its own.
	Context, Dockerfile string
	Target              string
	Args                map[string]string
	Platforms           []string
	// NoNetwork takes the network from RUN steps.
	NoNetwork bool
	// Secrets are files, by name.
	Secrets map[string]string
	// Out becomes an OCI image layout.
	Out string
	// CacheFrom is an image layout with what earlier builds left and CacheFromDigest
	// names it there; "" for none. CacheTo becomes one with what this build leaves; ""
	// leaves nothing. CacheName tells this component's RUN --mount=type=cache from those
	// of all others that build with the daemon.
	CacheFrom, CacheFromDigest, CacheTo, CacheName string
}

// stopGrace is how long buildctl gets to end the build in the daemon.
const stopGrace = 10 * time.Second

// arguments are those of buildctl. No secret is among them.
func (s Solve) arguments() []string {
	args := s.global()
	args = append(args, "build", "--progress", "rawjson", "--frontend", "dockerfile.v0",
		"--local", "context="+s.Context,
		"--local", "dockerfile="+filepath.Dir(s.Dockerfile),
		"--opt", "filename="+filepath.Base(s.Dockerfile),
		"--opt", "build-arg:SOURCE_DATE_EPOCH="+strconv.FormatInt(Epoch.Unix(), 10),
	)
	opt := func(name, value string) {
		if value != "" {
			args = append(args, "--opt", name+"="+value)
		}
	}
	opt("target", s.Target)
	opt("platform", strings.Join(s.Platforms, ","))
	for _, name := range slices.Sorted(maps.Keys(s.Args)) {
		args = append(args, "--opt", "build-arg:"+name+"="+s.Args[name])
	}
	if s.NoNetwork {
		opt("force-network-mode", "none")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Secrets)) {
		args = append(args, "--secret", "id="+name+",src="+s.Secrets[name])
	}
	if s.CacheName != "" { // after the app's own, which it wins over
		args = append(args, "--opt", "build-arg:BUILDKIT_CACHE_MOUNT_NS="+s.CacheName)
	}
	if s.CacheFrom != "" {
		args = append(args, "--import-cache", "type=local,src="+s.CacheFrom+",digest="+s.CacheFromDigest)
	}
	if s.CacheTo != "" {
		args = append(args, "--export-cache", "type=local,dest="+s.CacheTo+",mode=max,image-manifest=true,oci-mediatypes=true,ignore-error=true")
	}
	// The provenance of BuildKit has times in it, and would be part of the digest.
	return append(args, "--output", "type=oci,tar=false,dest="+s.Out+",rewrite-timestamp=true,oci-mediatypes=true,compression=gzip,force-compression=true")
}

func (s Solve) global() []string {
	args := []string{"--addr", s.Address, "--timeout", strconv.Itoa(connectTimeout)}
	if s.TLS != "" {
		args = append(args, "--tlscacert", filepath.Join(s.TLS, "ca.pem"), "--tlscert", filepath.Join(s.TLS, "cert.pem"), "--tlskey", filepath.Join(s.TLS, "key.pem"))
	}
	return args
}

// connectTimeout is for the first answer of the daemon, in seconds.
const connectTimeout = 10

// Error is what BuildKit said of a build that failed.
type Error struct {
	Text string
	// Step is the one that failed, "" when none had begun; Last is the last line that
	// it wrote.
	Step, Last string
}

func (e *Error) Error() string {
	text := e.Text
	if e.Step != "" {
		text = e.Step + ": " + text
	}
	if e.Last != "" {
		text += "; it wrote last: " + e.Last
	}
	return text
}

// ErrUnreachable says that no daemon answered.
var ErrUnreachable = errors.New("BuildKit does not answer")

// Version asks the daemon which BuildKit it is.
func (s Solve) Version(ctx context.Context) (string, error) {
	cmd := s.command(ctx, append(s.global(), "debug", "info"))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", fmt.Errorf("%w: %s", ErrUnreachable, lastLine(errs.String(), err))
	}
	// "BuildKit: github.com/moby/buildkit v0.33.1 <revision>"
	fields := strings.Fields(out.String())
	for _, field := range fields {
		if strings.HasPrefix(field, "v") {
			return field, nil
		}
	}
	return "unknown", nil
}

// Run builds. What happens goes to steps. Ending ctx ends the build in the daemon.
func (s Solve) Run(ctx context.Context, steps *Steps) error {
	cmd := s.command(ctx, s.arguments())
	cmd.Stdout = io.Discard
	progress, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	// It dies with this process: the thread that starts it is kept for that long.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start buildctl: %w", err)
	}
	said := steps.follow(bufio.NewReader(progress))
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		failure := &Error{Text: reason(said, err)}
		if steps.failed != nil {
			failure.Step, failure.Last = steps.failed.name, steps.failed.last
		}
		return failure
	}
	return nil
}

// command is buildctl, asked to stop when ctx ends.
func (s Solve) command(ctx context.Context, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.Command, args...)
	cmd.Dir, cmd.Env = s.Dir, s.Env
	dieWithParent(cmd)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = stopGrace
	return cmd
}

// reason is the error that buildctl prints last.
func reason(said string, err error) string {
	text := lastLine(said, err)
	for _, prefix := range []string{"error: ", "failed to solve: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}

func lastLine(text string, err error) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, line := range lines {
		if strings.HasPrefix(line, "error: ") {
			return line
		}
	}
	if last := lines[len(lines)-1]; last != "" {
		return last
	}
	return err.Error()
}
