package enginepod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/runner/agent/datadir"
)

// notLaunched is the exit code of a pod that started no engine; engines do not
// use it.
const notLaunched = 125

// agentAway is how long a connection to the agent is held while the agent is
// being restarted.
const agentAway = 2 * time.Minute

// Launch is the first process of an engine's pod: it starts what the folder
// says, at most once in the life of an attempt, and ends as that ends. An error
// means that nothing was started.
func Launch(f Folder) (code int, err error) {
	// First of all: without handlers, signals do nothing to process 1.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	var s Start
	if found, err := datadir.ReadJSON(f.start(), &s); err != nil || !found {
		return notLaunched, errors.Join(fmt.Errorf("%s says nothing to start", f), err)
	}
	if err := s.verify(); err != nil {
		return notLaunched, err
	}
	if s.OwnImage {
		groups, err := os.Getgroups()
		if err != nil {
			return notLaunched, err
		}
		if s.Env, err = s.enterImage(toolsDir, os.Getenv("PATH"), groups); err != nil {
			return notLaunched, err
		}
	}
	if s.Relay != 0 {
		listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Relay)))
		if err != nil {
			return notLaunched, fmt.Errorf("relay to the agent: %w", err)
		}
		go relay(listener, f.Socket())
	}
	child, err := s.start(f)
	if err != nil {
		return notLaunched, err
	}
	go func() {
		for sig := range signals {
			_ = child.Signal(sig)
		}
	}()
	return reap(child.Pid)
}

// verify compares the executables of this pod with those of the agent's.
func (s Start) verify() error {
	for path, want := range s.Digests {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		got, err := digest.FromReader(file)
		file.Close()
		if err != nil {
			return err
		}
		if got.String() != want {
			return fmt.Errorf("%s is %s in this pod and %s in the runner's: restart the runner, so that both are of one image", path, got, want)
		}
	}
	return nil
}

func (s Start) start(f Folder) (*os.Process, error) {
	files := []*os.File{nil}
	defer func() {
		for _, file := range files[1:] {
			_ = file.Close()
		}
	}()
	for _, path := range []string{f.Stdout(), f.Stderr()} {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	marker, err := begin(f.marker()) // the last thing before the engine
	if err != nil {
		return nil, err
	}
	// The engine and what it starts inherit the lock. This process has it too,
	// until it ends.
	child, err := os.StartProcess(s.Path, append([]string{s.Path}, s.Args...), &os.ProcAttr{
		Dir: s.Dir, Env: s.Env, Files: append(files, marker),
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start engine: %w", err), write(marker, saysNever), marker.Close())
	}
	return child, nil
}

// reap waits for the child, and for what others leave to process 1.
func reap(child int) (code int, err error) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return notLaunched, fmt.Errorf("wait for the engine: %w", err)
		case pid != child || !status.Exited() && !status.Signaled():
			continue
		case status.Signaled():
			return 128 + int(status.Signal()), nil
		}
		return status.ExitStatus(), nil
	}
}

// relay leads each connection to the agent's socket. An agent that is away is
// waited for: Terraform must not lose a state because of that.
func relay(listener net.Listener, socket string) {
	for {
		here, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer here.Close()
			there, err := reach(socket)
			if err != nil {
				return // Terraform tries again by itself
			}
			defer there.Close()
			go func() {
				_, _ = io.Copy(there, here)
				_ = there.CloseWrite()
			}()
			_, _ = io.Copy(here, there)
		}()
	}
}

func reach(socket string) (*net.UnixConn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), agentAway)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if unix, ok := conn.(*net.UnixConn); err == nil && ok {
			return unix, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(200 * time.Millisecond): // sockets have no wake-up
		}
	}
}
