package agent

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/tfstate"
	"github.com/berth-dev/berth/runner/agent/buildkit"
	"github.com/berth-dev/berth/runner/agent/cluster"
	"github.com/berth-dev/berth/runner/agent/disk"
	"github.com/berth-dev/berth/runner/agent/enginepod"
	"github.com/berth-dev/berth/runner/agent/job"
	"github.com/berth-dev/berth/runner/agent/order"
	"github.com/berth-dev/berth/runner/agent/process"
	"github.com/berth-dev/berth/runner/agent/trees"
	"github.com/berth-dev/berth/runner/agent/users"
)

// closers end what was opened.
type closers []func() error

func (c closers) close() {
	for _, end := range c {
		_ = end()
	}
}

// assemble opens everything that an enrolled runner works with.
func (a *agent) assemble(life context.Context) (closeAll func(), err error) {
	var opened closers
	defer func() {
		if err != nil {
			opened.close()
		}
	}()
	if a.iso.maps != nil {
		opened = append(opened, a.iso.maps.Close)
	}
	trusted, err := a.trusted()
	if err != nil {
		return nil, err
	}
	if a.layout, err = a.openLayout(); err != nil {
		return nil, fmt.Errorf("own registry: %w", err)
	}
	if a.trees, err = trees.Open(a.dir.Trees(), a.layout); err != nil {
		return nil, err
	}
	deps := a.deps(trusted)
	if err := a.reachable(); err != nil {
		return nil, err
	}
	if _, err := a.pinnedHosts(); err != nil {
		return nil, err
	}
	if err := a.openDispute(); err != nil {
		return nil, err
	}
	a.reports = newReports(a.dir, a.api, a.cfg.Log)
	if deps.Orders, err = order.OpenLedger(a.dir.Orders()); err != nil {
		return nil, damaged(a.dir.Orders(), err, "restore the file from a copy; without it the runner could do again what it did")
	}
	opened = append(opened, deps.Orders.Close)
	if err := a.forgetExpired(life, "begun orders", deps.Orders.Prune); err != nil {
		return nil, err
	}
	if a.runner.InstallID != "" {
		more, err := a.assembleInstall(life, deps)
		opened = append(opened, more...)
		if err != nil {
			return nil, err
		}
	}
	if a.runner.InstallID == "" {
		deps.Engine.BuildKit = a.buildKit()
		opened = append(opened, deps.Engine.BuildKit.Close)
		rules, end := a.openRules()
		deps.Guards, opened = rules, append(opened, end)
	}
	a.jobs = job.NewSet(life, deps, a.cfg.Slots)
	return opened.close, nil
}

// deps is what jobs need on every runner.
func (a *agent) deps(trusted order.Keys) *job.Deps {
	deps := &job.Deps{
		Dir: a.dir, Keys: a.keys, Runner: a.runner, Version: a.cfg.Version, Trusted: trusted,
		Engine: job.Engine{
			Path: a.cfg.Engine, Terraform: a.cfg.Terraform, Terraforms: a.terraforms, TerraformConfig: a.terraformConfig, SameMinor: a.cfg.TerraformMatch == MatchMinor, Tells: tfstate.Level(a.cfg.VendorSeesState), Providers: a.providerCache(), Registry: a.cfg.RegistryAddress, SearchPath: a.cfg.SearchPath,
			Pulumi: a.cfg.Pulumi, PulumiHome: a.cfg.PulumiHome, PulumiDownloads: a.cfg.TerraformDownloads == DownloadsAllow,
			Launcher: a.cfg.Executable, Isolation: a.iso.engines, Users: a.iso.users, Sight: a.iso.sight, ScratchMaps: a.iso.maps, Limits: a.iso.limits,
			Own:   []string{a.cfg.Kubeconfig, a.cfg.Contexts, a.cfg.Executable, a.cfg.Engine, a.cfg.Libexec, users.Dir},
			Grace: a.cfg.Grace, InPods: a.cfg.Engines == EnginesJobs,
		},
		Stopped: a.stand.stopped, Update: a.updates(),
		API: a.api, Registry: &registry{agent: a}, Layout: a.layout, Trees: a.trees, Sinks: &sinks{agent: a},
		Pods: a.enginePods(), Switch: a.power, Disk: a.disk, Digests: a.digests, Off: a.switches, Times: a.times, Log: a.cfg.Log, Now: a.cfg.Now,
	}
	deps.Contexts = cluster.Contexts{Dir: cmp.Or(a.cfg.Contexts, a.dir.Contexts()), Clouds: a.cfg.Clouds}
	deps.Contexts.Clouds.Now = a.cfg.Now
	switch {
	case a.cfg.Kubeconfig != "":
		deps.Cluster = cluster.File(a.cfg.Kubeconfig)
	case a.cfg.Pod != nil:
		deps.Cluster = a.cfg.Pod.Source()
	}
	return deps
}

// buildKit is what a Build Runner builds images with. Nothing is started before
// there is something to build.
func (a *agent) buildKit() *buildkit.Service {
	return buildkit.New(buildkit.Config{
		Settings: a.cfg.BuildKit, Dir: a.dir.BuildKit(), Lock: a.dir.LockFile(),
		Executable: a.cfg.Executable, Libexec: a.cfg.Libexec, SearchPath: a.cfg.SearchPath, EngineUID: a.cfg.EngineUID, Log: a.cfg.Log,
	})
}

// assembleInstall opens what only a runner of an install has: its chain, what its
// orders were used for, its scripts and schedule. What it returns is open, also
// with an error.
func (a *agent) assembleInstall(life context.Context, deps *job.Deps) (opened closers, err error) {
	if err := a.makeInstallDir(); err != nil {
		return nil, err
	}
	writer, err := a.openChain()
	if err != nil {
		return nil, err
	}
	opened = append(opened, writer.Close)
	a.chain = newRecorder(writer, a.disk, a.stand, a.cfg.Log)
	if err := a.openHeads(life); err != nil {
		return opened, err
	}
	deps.Chain = a.chain
	opened = append(opened, a.openGuards())
	deps.Guards = a.guards
	if deps.Nonces, err = capsule.OpenNonceFile(a.dir.Nonces()); err != nil {
		return opened, damaged(a.dir.Nonces(), err, "restore the file from a copy; without it an order could be carried out twice")
	}
	opened = append(opened, deps.Nonces.Close)
	if err := a.forgetExpired(life, "used orders", deps.Nonces.Prune); err != nil {
		return opened, err
	}
	if deps.Fences, err = order.OpenFences(a.dir.Fences()); err != nil {
		return opened, damaged(a.dir.Fences(), err, "restore the file from a copy; without it an outdated order could be carried out")
	}
	a.openBook(life)
	a.openRemedies(life, deps)
	if err := a.openScripts(life, deps); err != nil {
		return opened, err
	}
	deps.Secrets = a.customerSecrets()
	deps.Consents = a.openConsents()
	if deps.Offers, err = a.openOffers(life); err != nil {
		return opened, err
	}
	roles := a.roles()
	deps.Roles = &roles
	a.loadSettings(deps.Trusted.Dispatch)
	a.noteAside(life)
	a.recordDispute(life)
	a.nameKeys(life)
	if torn := writer.Torn(); torn != nil {
		a.note(life, "chain was cut", fmt.Sprintf("an unfinished record of %d bytes at offset %d was removed", len(torn.Bytes), torn.Offset))
	}
	return opened, nil
}

// forgetExpired drops what has expired from a list on disk. A full disk leaves the
// list longer than it has to be, which is not worth stopping for.
func (a *agent) forgetExpired(life context.Context, what string, prune func(now time.Time) error) error {
	err := a.disk.Insist(func() error { return prune(a.cfg.Now()) })
	if disk.Full(err) {
		a.cfg.Log.WarnContext(life, "a list is not tidied up", "list", what, "err", err) // all of them are still known
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// trusted are the keys whose orders this runner obeys.
func (a *agent) trusted() (keys order.Keys, err error) {
	if keys.Dispatch, err = a.trust.Keys(); err != nil {
		return keys, err
	}
	keys.Builder, err = a.trust.Builders()
	return keys, err
}

// enginePods runs engines in pods of their own; nil outside of a cluster. It is
// there also when new engines are child processes: an earlier agent may have
// left one in a pod.
func (a *agent) enginePods() *enginepod.Pods {
	if a.cfg.Pod == nil {
		return nil
	}
	return &enginepod.Pods{Config: enginepod.Config{
		Engine: a.cfg.Engine,
		Pod:    a.cfg.Pod, Executable: a.cfg.Executable, UID: a.cfg.EngineUID, GID: a.cfg.EngineUID,
		MemoryBytes: a.iso.limits.MemoryBytes, MilliCPU: a.cfg.EngineCPU, Grace: a.cfg.Grace, Log: a.cfg.Log,
	}}
}

// sample is a user that a job may get out of a range, 0 for none.
func sample(engineUIDs string) int {
	r, err := users.ParseRange(engineUIDs)
	if err != nil || r.Size == 0 {
		return 0
	}
	return r.First + 1
}

// reachable checks that engines of another user get to what they need.
func (a *agent) reachable() error {
	iso := a.iso.engines
	if iso.OwnUsers { // they are of the agent's user
		return nil
	}
	paths := []string{a.cfg.Engine, a.cfg.Terraform, a.dir.Install()}
	if iso.Hidden {
		// A job's user is anybody's; that it gets to the engine and through what is
		// above the data directory was tried.
		iso.UID, iso.GID = sample(a.cfg.EngineUIDs), sample(a.cfg.EngineUIDs)
		paths = []string{a.cfg.Terraform}
	}
	for _, path := range paths {
		if path == "" {
			continue
		}
		if err := process.Reachable(path, iso.UID, iso.GID); err != nil {
			return err
		}
	}
	return nil
}
