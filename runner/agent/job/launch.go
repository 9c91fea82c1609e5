package job

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/berth-dev/berth/runner/agent/jobdir"
	"github.com/berth-dev/berth/runner/agent/process"
	"github.com/berth-dev/berth/runner/agent/recovery"
)

// launchAhead has the launcher of the engine started while the agent prepares the
// folder. It knows nothing before the start is on disk, and ends with this agent.
// An engine that inherits locks gets its launcher when all of them are held.
func (j *job) launchAhead() error {
	if j.deps.Engine.InPods || !j.attempt.Isolation.Hidden {
		return nil
	}
	return j.prepareLaunch(nil)
}

// prepareLaunch has a launcher started that keeps these files open.
func (j *job) prepareLaunch(inherit []*os.File) error {
	stdout, err := output(j.dir.Stdout())
	if err != nil {
		return err
	}
	defer stdout.Close()
	stderr, err := output(j.dir.Stderr())
	if err != nil {
		return err
	}
	defer stderr.Close()
	spec := process.Spec{
		Path: j.deps.Engine.Path, Args: []string{"run", j.dir.Engine()}, Dir: j.dir.Engine(),
		Stdout: stdout, Stderr: stderr, Inherit: inherit,
		Isolation: j.attempt.Isolation, Group: j.group, Launcher: j.deps.Engine.Launcher,
	}
	if spec.Isolation.Hidden {
		spec.Sight = j.sight()
		if maps := j.deps.Engine.ScratchMaps; maps != nil && spec.Sight.Scratch != "" {
			if spec.ScratchMap, err = maps.For(spec.Isolation.UID); err != nil {
				return fmt.Errorf("start engine: %w", err)
			}
		}
	}
	maps, end, err := j.pathMaps(spec.Isolation.UID)
	defer end()
	if err != nil {
		return fmt.Errorf("start engine: %w", err)
	}
	spec.PathMaps = maps
	if j.launch, err = process.Prepare(spec); err != nil {
		return fmt.Errorf("start engine: %w", err)
	}
	return nil
}

// output opens a file that the engine writes to, and reads back what its scripts
// said last.
func output(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
}

// cancelLaunch ends a launcher that did not become the engine.
func (j *job) cancelLaunch() {
	if j.launch != nil {
		j.launch.Cancel()
	}
}

// becomeEngine lets the launcher become the engine, once the start is counted and
// on record.
func (j *job) becomeEngine(ctx, life context.Context) (engine, error) {
	if j.launch == nil {
		// A lock that an engine has it could also let go of. One in a process
		// namespace is known to be over without.
		if err := j.prepareLaunch(j.locks); err != nil {
			return nil, err
		}
	}
	if err := j.recordStart(false); err != nil {
		return nil, err
	}
	p, err := j.launch.Start(j.environment(ctx))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start engine: %w", err), j.advance(recovery.Ordered))
	}
	id := p.ID()
	if err := j.deps.Disk.Insist(func() error { return j.advance(recovery.Started, func(a *jobdir.Attempt) { a.Process = &id }) }); err != nil {
		// The disk is full or gone. The engine runs; what it does still counts.
		j.log.ErrorContext(ctx, "attempt cannot be written", "err", err)
	}
	j.logs.follow(life, j.dir.Stdout(), j.dir.Stderr())
	return p, nil
}

// recordStart counts the start and writes down that the engine is being started,
// with what belongs to that. It returns nil when both are on disk, whichever came
// first: a start that was counted too many refuses the order sooner, and one that
// is on record and was not counted has no engine.
func (j *job) recordStart(pod bool) error {
	before, attempt := j.attempt.Phase, j.attempt.Assignment.Attempt
	counted := make(chan error, 1)
	go func() { counted <- j.countStart(attempt) }()
	err := j.advance(recovery.Starting, func(a *jobdir.Attempt) {
		a.StartedAt = j.deps.Now().UTC()
		a.Deadline = a.StartedAt.Add(j.spec.Timeout() + overtime)
		a.Pod = pod
	})
	notCounted := <-counted
	if notCounted != nil && err == nil {
		err = j.advance(before, func(a *jobdir.Attempt) { a.Pod = false })
	}
	return errors.Join(notCounted, err)
}
