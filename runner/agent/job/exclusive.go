package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/pause"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/ending"
	"github.com/berth-dev/berth/runner/agent/pluginstate"
	"github.com/berth-dev/berth/runner/agent/stateproxy"
	"github.com/berth-dev/berth/runner/agent/states"
)

// lockResource makes sure that no other engine works on the resource. The lock
// passes to the engine, so it lasts as long as that does.
func (j *job) lockResource(ctx context.Context) error {
	looks := j.spec.Operation == jobspec.OperationRun || j.spec.Operation == jobspec.OperationDrift
	if j.spec.Resource == nil || looks || j.spec.Action != nil && !j.mutates() {
		return nil // a probe or a look for drift changes nothing, and the plan of a script does not even that
	}
	busy := errors.New("another engine still works on " + j.spec.Resource.Name)
	ctx, cancel := context.WithTimeout(ctx, resourceWait)
	defer cancel()
	for {
		lock, err := datadir.Flock(j.deps.Dir.ResourceLock(j.spec.Resource.ID), busy)
		if err == nil {
			j.locks = append(j.locks, lock)
			return nil
		}
		if !errors.Is(err, busy) {
			return err
		}
		if pause.For(ctx, time.Second) != nil { // rare; flock has no deadline
			return refuse(jobspec.OutcomeNotStarted, "", "%v", busy)
		}
	}
}

// relock takes the lock of the resource for an engine that runs without it: one
// in another pod holds no lock of the agent's. It is called before any engine
// is started.
func (j *job) relock() {
	if j.spec.Resource == nil || !j.mutates() {
		return
	}
	lock, err := datadir.Flock(j.deps.Dir.ResourceLock(j.spec.Resource.ID), errors.New("another engine of this resource has it"))
	if err != nil {
		j.log.Error("lock of the resource cannot be taken again", "err", err)
		return
	}
	j.locks = append(j.locks, lock)
}

// openProxy gives a job that has a state its backend, the same one as before
// when an earlier agent had opened it.
func (j *job) openProxy(life context.Context) error {
	if !j.spec.KeepsState() || j.spec.Resource == nil || j.spec.Operation == jobspec.OperationBuild {
		return nil
	}
	if j.spec.KeepsPluginState() { // the agent alone brings and takes it
		j.proxy = stateproxy.New(j.proxyConfig(), stateproxy.Access{})
		return nil
	}
	access := stateproxy.NewAccess()
	switch {
	case j.attempt.Proxy != nil:
		access = *j.attempt.Proxy
	case j.deps.Engine.InPods:
		var err error
		if access, err = j.relayed(access); err != nil {
			return err
		}
	}
	j.secrets.add(access.Password, "state proxy")
	listener, access, err := stateproxy.Listen(life, access)
	if err == nil && access.Socket != "" {
		err = j.openSocket(access.Socket)
	}
	if err != nil {
		if j.attempt.Proxy == nil {
			return err
		}
		// Somebody took the port. Terraform will fail to store its state, and
		// says so; the password keeps it from talking to a stranger.
		j.log.ErrorContext(life, "state proxy cannot be opened again", "err", err)
	}
	j.proxy = stateproxy.New(j.proxyConfig(), access)
	j.mu.Lock()
	j.attempt.Proxy = &access // on disk with the next phase
	j.mu.Unlock()
	if listener == nil {
		return nil
	}
	serve, cancel := context.WithCancel(life)
	go func() {
		<-j.over
		cancel()
	}()
	go func() {
		if err := j.proxy.Serve(serve, listener); err != nil {
			j.log.ErrorContext(life, "state proxy ended", "err", err)
		}
	}()
	return nil
}

func (j *job) proxyConfig() stateproxy.Config {
	config := stateproxy.Config{
		States: j.deps.API, Resource: j.spec.Resource.ID, Attempt: j.attempt.Key(), Mutates: j.mutates(),
		Keys: j.deps.Keys, Runner: j.deps.Runner, Dir: j.dir.Path, Disk: j.deps.Disk, Log: j.log,
		Learn: func(value any, written bool) { j.learn(value, written) }, Keep: j.keepState,
		Tells: j.deps.Engine.Tells, Redact: func(tree any) any { return j.secrets.set.Field(tree) }, Told: j.told,
	}
	if j.attempt.Assignment.Fence != nil {
		config.Fence = *j.attempt.Assignment.Fence
	}
	if j.spec.Operation == jobspec.OperationDrift { // nothing of the control plane's is in reach
		config.States, config.Keep = states.Alone{Store: j.states(), Mark: *j.spec.Drift.State}, nil
	}
	return config
}

func (j *job) pluginState() pluginstate.Keeper {
	return pluginstate.Keeper{Proxy: j.proxy, Dir: j.dir.Path, Engine: j.dir.Engine(), Salt: j.deps.Keys.Salt}
}

// bringPluginState gives a plugin the state that it was granted.
func (j *job) bringPluginState(ctx context.Context) error {
	if !j.spec.KeepsPluginState() {
		return nil
	}
	return j.pluginState().Bring(ctx)
}

// freeState frees a lock of the state that was taken for an engine that never began.
// One that stays is freed by the next grant.
func (j *job) freeState(life context.Context) {
	if j.proxy == nil {
		return
	}
	if err := j.proxy.Finish(life); err != nil {
		j.log.WarnContext(life, "lock of the state is not free", "err", err)
	}
}

// takePluginState hands in what the plugin of an apply made of its state. Without it
// nobody knows what was done.
func (j *job) takePluginState(life context.Context, end *ending.Facts) error {
	if !j.spec.KeepsPluginState() || !j.mutates() {
		return nil
	}
	serial, err := j.pluginState().Take(life, j.why() == ending.Lost)
	switch {
	case err != nil && life.Err() != nil:
		return errDetached
	case err != nil:
		end.Result, end.BadResult = nil, "the state of the plugin was not taken: "+oneLine(err)
	case serial > 0 && end.Result != nil:
		end.Result.Lineage, end.Result.Serial, _ = j.proxy.Present()
		fallthrough
	case serial > 0:
		j.remark(fmt.Sprintf("the state of the plugin is kept, serial %d", serial))
	}
	return nil
}
