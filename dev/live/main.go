// Command live is in images for development (dev/scripts/live-image.sh makes them).
// It runs an executable of Berth from /live, and starts it again when something
// newer is put there; and because these images hold no other program, it also is
// the tar and the rm by which Tilt does that:
//
//	live NAME [ARG]...    copies what /usr/local/bin has of Berth to /live, unless it is there, and runs NAME
//	tar -C DIR -x -f -    unpacks an archive of files, each of them in one step
//	rm -rf FILE...        deletes files
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// look is how often it looks for a newer executable.
	look = 50 * time.Millisecond
	// grace is how long a process that is asked to stop may take.
	grace = 20 * time.Second
)

// ours are the executables of Berth, among all of an image.
const ours = "berth*"

func main() {
	var err error
	switch name := filepath.Base(os.Args[0]); {
	case name == "tar":
		err = unpack(os.Args[1:], os.Stdin)
	case name == "rm":
		err = remove(os.Args[1:])
	case len(os.Args) < 2:
		fmt.Fprintln(os.Stderr, "usage: live NAME [ARG]...")
		os.Exit(2)
	default:
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if err = fill("/live", "/usr/local/bin/"+ours); err == nil {
			err = run(ctx, "/live", os.Args[1:])
		}
	}
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended) && ended.ExitCode() > 0:
		os.Exit(ended.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, "live:", err)
		os.Exit(1)
	}
}

// run runs a command whose executable is in dir until it ends by itself, which is
// the result, or ctx ends, which is none. It starts again when a file of dir
// changes: some executables start others of theirs.
func run(ctx context.Context, dir string, command []string) error {
	ctx, done := context.WithCancel(ctx)
	defer done()
	for {
		began, err := stamp(dir)
		if err != nil {
			return err
		}
		// It is asked to end; with ctx it would be killed.
		cmd := exec.CommandContext(context.Background(), filepath.Join(dir, command[0]), command[1:]...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			return err
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			stop(cmd.Process, ended)
			return nil
		case <-changed(ctx, dir, began):
			fmt.Fprintln(os.Stderr, "live: starting the newer", command[0])
			stop(cmd.Process, ended)
		}
	}
}

// stamp tells the files of a folder as they are now from those at another time.
func stamp(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(entry.Name(), ".") {
			continue // gone just now, or being written
		}
		fmt.Fprintln(&out, entry.Name(), info.Size(), info.ModTime().UnixNano())
	}
	return out.String(), nil
}

// changed is closed once the files of a folder differ from what they were, and have
// not changed any more since the look before.
func changed(ctx context.Context, dir, began string) <-chan struct{} {
	newer := make(chan struct{})
	go func() {
		tick := time.NewTicker(look)
		defer tick.Stop()
		for before := began; ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now, err := stamp(dir)
			if err == nil && now != began && now == before {
				close(newer)
				return
			}
			before = now
		}
	}()
	return newer
}

// stop asks a process to stop, and kills it after grace.
func stop(process *os.Process, ended <-chan error) {
	_ = process.Signal(syscall.SIGTERM) // it may just have ended
	select {
	case <-ended:
	case <-time.After(grace):
		_ = process.Kill()
		<-ended
	}
}
