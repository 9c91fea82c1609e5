package fleet

import (
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/berth-dev/berth/services/builder/internal/fleet/roster"
)

// keeper keeps one Build Runner alive.
type keeper struct {
	fleet    *Fleet
	orgID    string
	runnerID string
	dir      dataDir
	log      *slog.Logger
}

func (f *Fleet) keeper(orgID, runnerID string) *keeper {
	return &keeper{
		fleet: f, orgID: orgID, runnerID: runnerID, dir: dataDir(filepath.Join(f.config.Dir, runnerID)),
		log: f.config.Log.With("org_id", orgID, "runner_id", runnerID),
	}
}

// run starts the runner, again and again, until ctx ends or the runner is not
// wanted any more.
func (k *keeper) run(ctx context.Context) {
	backoff := k.fleet.config.MinBackoff
	for {
		began := time.Now()
		err := k.once(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, roster.ErrRevoked):
			k.log.InfoContext(ctx, "build runner is not wanted any more")
			return
		}
		if time.Since(began) > healthyAfter {
			backoff = k.fleet.config.MinBackoff
		}
		k.log.WarnContext(ctx, "build runner ended", "err", err, "restart_in", backoff)
		select {
		case <-ctx.Done():
			return
		case <-time.After(backoff):
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// once is one life of the runner's process. One that a builder before us
// started, and that still lives, is watched in place of a new one; it is ended
// when it is to trust another key.
func (k *keeper) once(ctx context.Context) error {
	moved, err := k.provide(ctx)
	if err != nil {
		return err
	}
	if moved && k.dir.locked() { // it believes whom it believed at its start
		k.log.InfoContext(ctx, "build runner is started again: it is to trust another key")
		ended, cancel := context.WithCancel(ctx)
		cancel()
		return adopt(ended, k.dir)
	}
	if k.dir.locked() {
		k.log.InfoContext(ctx, "build runner found alive")
		return adopt(ctx, k.dir)
	}
	return k.start(ctx)
}

// start runs a new process and waits for its end. What it writes goes to a
// file: a pipe would kill it when the builder dies.
func (k *keeper) start(ctx context.Context) error {
	out, err := k.dir.openLog()
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.CommandContext(ctx, k.fleet.config.Executable, "--data", string(k.dir))
	// Engines are not touched at the end: they are the runner's.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
	cmd.Dir = string(k.dir)
	cmd.Env = k.fleet.config.Env
	cmd.Stdout, cmd.Stderr = out, out
	// A group of its own: Ctrl-C in a terminal is ours to pass on, once.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	k.log.InfoContext(ctx, "build runner started", "pid", cmd.Process.Pid)
	return orExit(cmd.Wait())
}

// orExit gives an end without an error one: a runner has no reason to end.
func orExit(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}
