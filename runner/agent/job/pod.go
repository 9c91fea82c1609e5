package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/runner/agent/ending"
	"github.com/berth-dev/berth/runner/agent/enginepod"
	"github.com/berth-dev/berth/runner/agent/jobdir"
	"github.com/berth-dev/berth/runner/agent/recovery"
	"github.com/berth-dev/berth/runner/agent/stateproxy"
)

// relayPort is where Terraform finds the state proxy in its pod, which has its
// loopback for itself.
const relayPort = 8700

// launchPod is launch for an engine in a pod of its own.
func (j *job) launchPod(ctx, life context.Context) (engine, error) {
	e := j.deps.Engine
	start := enginepod.Start{
		Path: e.Path, Args: []string{"run", j.dir.Engine()}, Dir: j.dir.Engine(), Env: j.environment(ctx), Digests: map[string]string{},
	}
	for _, path := range []string{e.Path, j.terraform()} {
		if path == "" {
			continue
		}
		var err error
		if start.Digests[path], err = j.deps.Digests.Of(path); err != nil {
			return nil, err
		}
	}
	if j.attempt.Proxy != nil {
		start.Relay = j.attempt.Proxy.Port
	}
	if j.image != "" {
		start = start.InImage()
		j.remark("the steps run in image " + j.image)
	}
	if err := j.dir.Pod().Make(start, e.Isolation.UID, e.Isolation.GID); err != nil {
		return nil, fmt.Errorf("folder of the engine's pod: %w", err)
	}
	if err := j.recordStart(true); err != nil {
		return nil, err
	}
	p, err := j.deps.Pods.Start(ctx, life, j.podOrder())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start engine: %w", err), j.advance(recovery.Ordered, func(a *jobdir.Attempt) { a.Pod = false }))
	}
	if err := j.deps.Disk.Insist(func() error { return j.advance(recovery.Started) }); err != nil {
		j.log.ErrorContext(ctx, "attempt cannot be written", "err", err) // it runs; what it does still counts
	}
	j.logs.follow(life, j.dir.Pod().Stdout(), j.dir.Pod().Stderr())
	return p, nil
}

// adoptPod takes over an engine in a pod, or finds out that it is over.
func (j *job) adoptPod(life context.Context) error {
	if j.deps.Pods == nil {
		return errors.New("its engine is in a pod of the cluster, and this runner is not: start it there again, with --in-cluster")
	}
	j.logs.follow(life, j.dir.Pod().Stdout(), j.dir.Pod().Stderr())
	j.remark("the runner was restarted and continues this job")
	return j.await(life, j.deps.Pods.Adopt(life, j.podOrder()))
}

func (j *job) podOrder() enginepod.Order {
	dirs, closed := []string{j.dir.Engine()}, []string{j.dir.In("")}
	if j.deps.Pods.SharesUser() { // modes keep nothing from it, so mounts do
		dirs = []string{j.out(), filepath.Join(j.dir.Engine(), "work")}
		closed = []string{j.dir.Engine()}
	}
	if j.spec.InstallID != "" {
		dirs = append(dirs, j.deps.Dir.Install())
	}
	closed = append(closed, j.fetched()...)
	return enginepod.Order{
		Image: j.image,
		Name:  j.attempt.Name(), Folder: j.dir.Pod(), Dirs: dirs, Closed: closed,
		Limit: j.spec.Timeout() + overtime + j.deps.Engine.Grace, Note: j.remark,
	}
}

// neverBegan tells of an engine that is over whether it provably did nothing,
// and why, as far as that is known.
func neverBegan(e engine) (reason string, never bool) {
	p, inPod := e.(*enginepod.Run)
	if !inPod || p.Began() {
		return "", false
	}
	return p.Reason(), true
}

// finishUnbegun finishes an attempt whose pod came to no engine.
func (j *job) finishUnbegun(life context.Context, reason string) error {
	// For a later agent too: nothing was started.
	err := j.stored(life, "attempt", func() error { return j.advance(recovery.Ordered, func(a *jobdir.Attempt) { a.Pod = false }) })
	if err != nil {
		return err
	}
	j.freeState(life)
	switch {
	case j.why() != "" || reason != "":
		return j.finish(life, j.failure(errors.New("the engine did not begin: "+reason)), nil)
	}
	return j.finish(life, ending.BeforeEngine(j.mutates()), nil)
}

// relayed makes of access one for an engine in another pod.
func (j *job) relayed(access stateproxy.Access) (stateproxy.Access, error) {
	access.Port, access.Socket = relayPort, j.dir.Pod().Socket()
	return access, os.MkdirAll(string(j.dir.Pod()), 0o700)
}

// openSocket lets the engine's user reach the state proxy.
func (j *job) openSocket(path string) error {
	iso := j.attempt.Isolation
	if iso.UID == 0 {
		iso = j.deps.Engine.Isolation
	}
	return os.Lchown(path, iso.UID, iso.GID)
}
