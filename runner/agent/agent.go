package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/pause"
	"github.com/berth-dev/berth/runner/agent/consents"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/disk"
	"github.com/berth-dev/berth/runner/agent/egress"
	"github.com/berth-dev/berth/runner/agent/ending"
	"github.com/berth-dev/berth/runner/agent/gauges"
	"github.com/berth-dev/berth/runner/agent/guards"
	"github.com/berth-dev/berth/runner/agent/job"
	"github.com/berth-dev/berth/runner/agent/offers"
	"github.com/berth-dev/berth/runner/agent/order"
	"github.com/berth-dev/berth/runner/agent/power"
	"github.com/berth-dev/berth/runner/agent/remedy"
	"github.com/berth-dev/berth/runner/agent/schedule"
	"github.com/berth-dev/berth/runner/agent/scripts"
	"github.com/berth-dev/berth/runner/agent/toolchain"
	"github.com/berth-dev/berth/runner/agent/trees"
)

// deliverTimeout is how long an ending agent tries to hand in what its engines
// left; the rest waits on disk.
const deliverTimeout = 10 * time.Second

// Why an agent ends by itself, for errors.Is.
var (
	ErrRevoked = errors.New("this runner was revoked")
	// ErrSuperseded: another machine has replaced this one.
	ErrSuperseded = errors.New("another machine works as this runner")
	ErrEnrolment  = errors.New("enrolment refused")
	// ErrDamaged: a file that says what this runner may do, or what it has done,
	// cannot be believed. Somebody has to look before it works again.
	ErrDamaged = errors.New("the data directory is damaged")
	// ErrUpdated: another version of the runner is to run in this one's place.
	ErrUpdated = errors.New("another version of the runner is to run")
)

// agent is one life of the program.
type agent struct {
	cfg    Config
	dir    datadir.Dir
	keys   datadir.Keys
	runner datadir.Runner
	trust  datadir.Trust
	http   egress.Client
	api    *control.Client
	power  *power.Switch
	disk   *disk.Guard
	layout *oci.Layout
	trees  *trees.Store
	iso    isolation
	jobs   *job.Set

	ledger   *egress.Ledger
	switches *egress.Switches
	consents *consents.Gate // nil for a Build Runner
	link     *link
	stand    *stand          // why mutations are stopped
	chain    *recorder       // nil for Build Runners
	book     *schedule.Book  // nil for Build Runners
	remedies *remedy.Ledger  // nil for Build Runners
	offers   *offers.Gate    // nil for Build Runners
	scripts  *scripts.Set    // nil for Build Runners
	runs     *scripts.Ledger // nil for Build Runners
	reports  *reports
	times    *gauges.Times
	guards   *guards.Guards // nil for Build Runners

	digests    *order.Digests
	terraforms *toolchain.Tools
	// terraformConfig is Terraform's configuration that the agent wrote, "" for none.
	terraformConfig string

	// aside are damaged files that were set aside before there was a chain to
	// record that in.
	aside []string

	mu       sync.Mutex
	settings inForce
	renewed  chan struct{} // closed when settings change

	trial trial
}

func newAgent(cfg Config) *agent {
	return &agent{cfg: cfg, digests: &order.Digests{}, link: newLink(), stand: newStand(), times: &gauges.Times{}, renewed: make(chan struct{}), trial: newTrial()}
}

// Run works until ctx ends: then engines are asked to stop, and what they leave
// is handed in if that goes quickly. It returns earlier when the runner may not
// work any more; errors.Is tells why.
func Run(ctx context.Context, cfg Config) (err error) {
	cfg, err = cfg.Complete()
	if err != nil {
		return err
	}
	defer func() { err = disk.Explain(cfg.Data, cfg.MinFree, err) }()
	a := newAgent(cfg)
	if a.dir, err = datadir.At(cfg.Data); err != nil {
		return err
	}
	if err := a.dir.Make(passage(cfg)); err != nil {
		return err
	}
	lock, err := lockPatiently(ctx, a.dir)
	if err != nil {
		return fmt.Errorf("%s: %w", cfg.Data, err)
	}
	defer datadir.Unlock(lock)
	a.disk = disk.Open(a.dir.Path(), cfg.MinFree, cfg.Log)
	if err := a.openEgress(); err != nil {
		return err
	}
	defer a.closeEgress()
	a.provideTerraform(ctx)
	if err := a.provideProviders(); err != nil {
		return err
	}
	if err := a.isolate(); err != nil {
		return err
	}
	if err := a.open(); err != nil {
		return err
	}
	// What belongs to the whole life keeps running after ctx has ended.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	if err := a.enrol(ctx); err != nil {
		return err
	}
	closeAll, err := a.assemble(life)
	if err != nil {
		return err
	}
	defer closeAll()
	return a.work(ctx, life, end)
}

// lockPatience is how long a lock may outlive the agent that had it: a process
// that was just being started has a copy of every file until it is an engine.
const lockPatience = time.Second

func lockPatiently(ctx context.Context, dir datadir.Dir) (*os.File, error) {
	for deadline := time.Now().Add(lockPatience); ; {
		lock, err := dir.Lock()
		if !errors.Is(err, datadir.ErrBusy) || time.Now().After(deadline) || pause.For(ctx, lockPatience/20) != nil {
			return lock, err
		}
	}
}

// open reads what the customer's side wrote, and the keys.
func (a *agent) open() (err error) {
	if err := a.admit(); err != nil {
		return err
	}
	if a.trust, err = a.dir.LoadTrust(); err != nil {
		return damaged(a.dir.Trust(), err, "write it again, as it was; only you know what this runner is to trust")
	}
	if a.keys, err = a.dir.Keys(); err != nil {
		return damaged(a.dir.Path(), err, "restore the file from a copy; without it this is another runner, and the install needs a new enrolment")
	}
	a.power = power.Open(a.dir, a.cfg.Log)
	base, err := control.NewHTTP(first(a.cfg.CAFile, a.trust.PrivateCAFile))
	if err != nil {
		return err
	}
	a.http = a.ledger.Client(base)
	a.api, err = control.New(a.trust.RunnerAPIURL, a.keys.Sign, a.http, a.power)
	return err
}

// work runs all loops until one of them cannot continue, or ctx ends.
func (a *agent) work(ctx, life context.Context, end context.CancelFunc) error {
	ticks, err := a.jobs.Recover()
	if err != nil {
		return fmt.Errorf("recover jobs: %w", err)
	}
	for _, t := range ticks {
		if t.Remedy != nil {
			continue // of no schedule
		}
		if err := a.disk.Insist(func() error { return a.advanceAll(t) }); err != nil {
			a.cfg.Log.ErrorContext(ctx, "schedule cannot be written", "err", err) // the run itself is on disk, and is reported once
		}
	}
	a.prune(life)
	a.cfg.Log.InfoContext(ctx, "runner started", "runner_id", a.runner.RunnerID, "install_id", a.runner.InstallID,
		"version", a.cfg.Version, "slots", a.cfg.Slots, "trust", string(a.trustLevel()), "engine", a.cfg.Engine,
		"isolation", a.iso.text(), "limits", a.iso.limitsText())
	if a.iso.unlimited != "" {
		a.cfg.Log.WarnContext(ctx, "engines run without limits", "why", a.iso.unlimited)
	}
	defer gauges.Watch(a.numbers)()
	g, lifeLoops := errgroup.WithContext(life)
	g.Go(func() error { return a.power.Watch(lifeLoops) })
	g.Go(func() error { return a.obeySwitch(lifeLoops) })
	g.Go(func() error { return a.disk.Run(lifeLoops) })
	g.Go(func() error { return a.sessions(ctx, lifeLoops) })
	g.Go(func() error { return a.passTrial(lifeLoops) })
	g.Go(func() error { return a.awaitRestart(lifeLoops) })
	if a.runner.InstallID != "" {
		g.Go(func() error { return a.runSchedule(ctx, lifeLoops) })
		g.Go(func() error { return a.keepHealthy(ctx, lifeLoops) })
		g.Go(func() error { return a.tellRemedies(lifeLoops) })
		g.Go(func() error { return a.recordRuns(lifeLoops) })
		g.Go(func() error { return a.recordEgress(lifeLoops) })
		g.Go(func() error { return a.recordDisclosures(lifeLoops) })
		g.Go(func() error { return a.keepRoles(lifeLoops) })
		g.Go(func() error { return a.guards.Tell(lifeLoops) })
		g.Go(func() error { return a.keepConsents(lifeLoops) })
		g.Go(func() error { return a.reports.deliver(lifeLoops) })
		g.Go(func() error { return a.phoneHome(lifeLoops) })
		g.Go(func() error { return a.tellNumbers(lifeLoops) })
	}
	if a.cfg.Pod != nil {
		g.Go(func() error { return a.followClusterSwitch(lifeLoops) })
		if a.guards != nil {
			g.Go(func() error { return a.followClusterGuardrails(lifeLoops) })
		}
	}
	g.Go(func() error {
		select {
		case <-ctx.Done():
			a.shutDown(life)
		case <-lifeLoops.Done():
			// Before life ends: after that, engines are left to the next agent.
			if cause := context.Cause(lifeLoops); errors.Is(cause, ErrRevoked) || errors.Is(cause, ErrSuperseded) {
				a.jobs.StopAll(ending.Lost)
				if a.jobs.Quiet(a.cfg.Grace) {
					a.jobs.Gone(deliverTimeout) // what they worked with is in clear
				}
			}
		}
		end()
		return nil
	})
	err = g.Wait()
	end()
	a.jobs.Wait()
	a.lastRuns()
	a.writeStatus(func(s *Status) { s.SessionID, s.Connected = "", false })
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// shutDown lets engines stop and hands in what they leave. Engines in pods do
// not end with the agent: they keep running, and the next agent adopts them.
func (a *agent) shutDown(life context.Context) {
	if a.cfg.Engines == EnginesJobs {
		a.cfg.Log.InfoContext(life, "runner stops and leaves its engines to the next", "engines", a.jobs.Running())
		return
	}
	a.cfg.Log.InfoContext(life, "runner stops", "engines", a.jobs.Running())
	a.jobs.StopAll(ending.Shutdown)
	if !a.jobs.Quiet(a.cfg.Grace + 5*time.Second) {
		return
	}
	deadline := time.After(deliverTimeout)
	for a.link.open() && len(a.jobs.Held()) > 0 {
		changed := a.jobs.Changed()
		if len(a.jobs.Held()) == 0 {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			return
		}
	}
}

// obeySwitch stops engines when the customer says so, and records each change.
func (a *agent) obeySwitch(life context.Context) error {
	last, changed := a.power.Now()
	for {
		if last.Mode.Stops() {
			a.jobs.StopAll(ending.Switch)
		}
		select {
		case <-life.Done():
			return context.Cause(life)
		case <-changed:
		}
		var now power.State
		now, changed = a.power.Now()
		if now.Mode != last.Mode {
			a.cfg.Log.InfoContext(life, "switch was set", "mode", string(now.Mode), "reason", now.Reason)
			a.note(life, "switch: "+string(now.Mode), now.Reason)
		}
		last = now
	}
}

// passage is the group that may pass through the data directory: that of
// engines which do not see it in a mount namespace of their own. It is opened
// for them also where new engines do, since one of an earlier agent may live.
func passage(cfg Config) int {
	if os.Geteuid() != 0 {
		return 0
	}
	return cfg.EngineUID
}
