package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/plugin"
	"github.com/berth-dev/berth/runner/engine/job"
)

const (
	// stopGrace is how long a plugin may take to end after SIGTERM.
	stopGrace = 15 * time.Second
	// maxLog is how much it may write to its log, in bytes; more ends it.
	maxLog = 32 << 20
	// maxFiles and maxTree bound its directory, in files and bytes; lookEvery is how
	// often that is measured.
	maxFiles  = 20_000
	maxTree   = 512 << 20
	lookEvery = 250 * time.Millisecond
)

// overrun is why a plugin was ended by its limits.
type overrun struct{ what string }

func (o *overrun) Error() string { return o.what }

// run runs the plugin to its end, and reads what it says came of that. Everything
// that it left running in its process group ends with it; the rest ends with this
// process.
func (p *admitted) run(ctx context.Context) (report, error) {
	if err := limit(); err != nil {
		return report{}, err
	}
	j := p.job
	dirs := plugin.Dirs{Job: p.dir()}
	if p.given.InstallDir {
		dirs.Install = j.Env["BERTH_INSTALL_DIR"]
	}
	if p.given.State {
		dirs.State = p.stateDir()
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	way, err := p.openRelay()
	if err != nil {
		return report{}, err
	}
	defer way.close()
	cmd, err := p.command(ctx, dirs)
	if err != nil {
		return report{}, err
	}
	cmd.Env = append(cmd.Env, way.env()...)
	log := &budget{left: maxLog, spent: func() { end(&overrun{fmt.Sprintf("it wrote more than %d bytes to its log", maxLog)}) }}
	cmd.Stdout, cmd.Stderr = log.to(j.Stdout), log.to(j.Stderr)
	// A process that it left behind may hold the log open.
	cmd.WaitDelay = time.Second
	j.Logf("plugin %s %s: %s", p.manifest.Type, p.manifest.Version, j.Spec.Operation)
	if err := cmd.Start(); err != nil {
		return report{}, p.notStarted(err)
	}
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { p.watch(done, end) })
	err = p.await(ctx, cmd)
	close(done)
	watching.Wait()
	if err == nil {
		err = p.measure() // what it wrote just before its end
	}
	return p.conclude(ctx, cmd, err)
}

// await waits for the plugin. It asks it to end when ctx does, and ends it when it
// is over one of its limits.
func (p *admitted) await(ctx context.Context, cmd *exec.Cmd) error {
	over := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its state says all
		close(over)
	}()
	group := -cmd.Process.Pid
	defer func() { _ = syscall.Kill(group, syscall.SIGKILL) }()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
	}
	grace := stopGrace
	if _, over := errors.AsType[*overrun](context.Cause(ctx)); over {
		grace = 0
	} else {
		_ = syscall.Kill(group, syscall.SIGTERM)
	}
	select {
	case <-over:
	case <-time.After(grace):
		_ = syscall.Kill(group, syscall.SIGKILL)
		<-over
	}
	return context.Cause(ctx)
}

// conclude judges what the plugin left.
func (p *admitted) conclude(ctx context.Context, cmd *exec.Cmd, err error) (report, error) {
	if o, over := errors.AsType[*overrun](err); over {
		return report{}, p.brokenf("%s", o.what)
	}
	if o, over := errors.AsType[*overrun](context.Cause(ctx)); over {
		return report{}, p.brokenf("%s", o.what)
	}
	code := cmd.ProcessState.ExitCode()
	r, missing := p.report()
	switch {
	case missing != nil && err != nil: // it was stopped
		return r, &job.Failure{ExitCode: code, Message: fmt.Sprintf("%s: the plugin ended without a result", p.job.Subject())}
	case missing != nil:
		return r, p.brokenf("it ended with exit code %d: %v", code, missing)
	case r.Outcome == jobspec.OutcomeCancelled && context.Cause(ctx) == nil:
		return r, p.brokenf("it says that it was stopped, and nobody stopped it")
	case r.Outcome != jobspec.OutcomeSucceeded:
		return r, &job.Failure{Outcome: outcome(r.Outcome, context.Cause(ctx)), Message: p.job.Subject() + ": " + oneLine(r.Error), Remedy: oneLine(r.Remedy), ExitCode: code}
	case code != jobspec.ExitFinished:
		return r, p.brokenf("it says that it succeeded, and ended with exit code %d", code)
	}
	return r, nil
}

// outcome is the one of a plugin that did not succeed. A job that took too long has
// failed, whatever its plugin says of the SIGTERM that it got then: one that was
// cancelled or did not start would be done again, and take as long.
func outcome(said jobspec.Outcome, cause error) jobspec.Outcome {
	if errors.Is(cause, job.ErrTimeout) && (said == jobspec.OutcomeCancelled || said == jobspec.OutcomeNotStarted) {
		return jobspec.OutcomeFailed
	}
	return said
}

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxError {
		s = strings.ToValidUTF8(s[:maxError], "") + "…"
	}
	return s
}

// watch ends the plugin when its directory grows over its limits.
func (p *admitted) watch(done <-chan struct{}, end context.CancelCauseFunc) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			if err := p.measure(); err != nil {
				end(err)
				return
			}
		}
	}
}

// measure says whether the plugin's directory is over its limits.
func (p *admitted) measure() error {
	files, size := 0, int64(0)
	err := filepath.WalkDir(p.dir(), func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it is gone again, or closed: not ours to read
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		if files++; files > maxFiles {
			return &overrun{fmt.Sprintf("it made more than %d files", maxFiles)}
		}
		if size > maxTree {
			return &overrun{fmt.Sprintf("it wrote more than %d bytes of files", maxTree)}
		}
		return nil
	})
	return err
}

// limit lowers the limits of this process, and so those of the plugin.
func limit() error {
	for resource, most := range map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: maxTree} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("limit the plugin: %w", err)
		}
	}
	return nil
}

// budget lets only so many bytes through, of all its writers together.
type budget struct {
	mu    sync.Mutex
	left  int
	spent func()
}

func (b *budget) to(f *os.File) io.Writer { return budgeted{b, f} }

type budgeted struct {
	*budget
	f *os.File
}

// Write implements io.Writer. What is over the budget is dropped.
func (b budgeted) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(p), b.left)
	b.left -= n
	if n < len(p) {
		b.spent()
	}
	if _, err := b.f.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}
