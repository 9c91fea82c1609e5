package agent

import (
	"context"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/jobdir"
	"github.com/berth-dev/berth/runner/agent/order"
	"github.com/berth-dev/berth/runner/agent/schedule"
)

const (
	// maxSleep is the longest time between two looks at the clock: it may be
	// set, or the machine may have slept.
	maxSleep = time.Minute
	// runTimeout is for actions whose settings name none.
	runTimeout = 5 * time.Minute
)

// runSchedule starts actions at their ticks until work ends.
func (a *agent) runSchedule(work, life context.Context) error {
	started := a.cfg.Now()
	expired := false
	for {
		settings, renewed := a.current()
		now := a.cfg.Now()
		next := now.Add(maxSleep)
		if settings.Version > 0 {
			if !now.Before(settings.until()) {
				if !expired {
					expired = true
					a.cfg.Log.WarnContext(life, "settings have expired, nothing is scheduled any more", "version", settings.Version)
				}
			} else {
				expired = false
				for _, s := range settings.Schedule {
					if at := a.look(life, s, moment{settings: settings.Settings, started: started, now: now}); !at.IsZero() && at.Before(next) {
						next = at
					}
				}
			}
		}
		timer := time.NewTimer(next.Sub(a.cfg.Now()))
		select {
		case <-timer.C:
		case <-renewed:
		case <-work.Done():
			timer.Stop()
			<-life.Done()
			return context.Cause(life)
		case <-life.Done():
			timer.Stop()
			return context.Cause(life)
		}
		timer.Stop()
	}
}

// moment is one look at the clock.
type moment struct {
	settings     jobspec.Settings // in force
	started, now time.Time        // started is when the agent was
}

// look does what is due of one action and returns when to look again.
func (a *agent) look(ctx context.Context, s jobspec.Scheduled, m moment) time.Time {
	name := s.Name()
	log := a.cfg.Log.With("action", name)
	cron, err := schedule.Parse(s.Cron)
	if err != nil {
		log.ErrorContext(ctx, "action is not scheduled", "err", err)
		return time.Time{}
	}
	if s.Probe != nil {
		cron = schedule.Spread(cron, s.Probe.Resource.ID)
	}
	last, known := a.book.Last(name)
	if !known { // seen for the first time: its past is not ours
		if err := a.book.Advance(name, m.now); err != nil {
			log.ErrorContext(ctx, "schedule cannot be written", "err", err)
		}
		return cron.Next(m.now.UTC())
	}
	if last.Before(m.started) { // what the agent did not live through
		down := schedule.Due(cron, last, m.started, true)
		for _, tick := range down.Missed {
			a.miss(ctx, name, tick, "the runner was not running")
		}
		if n := len(down.Missed); n > 0 {
			last = down.Missed[n-1]
		}
	}
	ticks := schedule.Due(cron, last, m.now, false)
	for _, tick := range ticks.Missed {
		why := "the machine was asleep"
		if a.disk.WasLow(tick) {
			why = "the disk of the runner's data directory was full"
		}
		a.miss(ctx, name, tick, why)
	}
	if !ticks.Fire.IsZero() {
		a.fire(ctx, m.settings, s, ticks.Fire)
	}
	return ticks.Next
}

// fire starts the run of a tick, unless something stands against it.
func (a *agent) fire(ctx context.Context, settings jobspec.Settings, s jobspec.Scheduled, tick time.Time) {
	timeout := s.TimeoutSeconds
	if timeout <= 0 {
		timeout = int(runTimeout / time.Second)
	}
	runID := id.New(id.ActionRun)
	spec := jobspec.Spec{
		Version: jobspec.Version, JobID: runID, OrgID: settings.OrgID, InstallID: settings.InstallID,
		Kind: jobspec.KindAction, Operation: jobspec.OperationRun,
		State: settings.State, StateVersion: settings.StateVersion, TimeoutSeconds: timeout,
	}
	if p := s.Probe; p != nil {
		spec.Kind, spec.Resource, spec.Work = p.Kind, &p.Resource, p.Work
	} else {
		spec.Action = &s.Action
	}
	script, why, err := a.mayRun(ctx, s)
	if err != nil {
		a.cfg.Log.ErrorContext(ctx, "scheduled run cannot be started", "action", s.Name(), "err", err)
		return
	}
	// What a script is follows from what was accepted, not from what settings say.
	check := order.IsCheck(spec, script.Script.HealthCheck)
	state := a.power.Read()
	switch {
	case why != "":
		a.miss(ctx, s.Name(), tick, why)
		return
	case !state.Mode.Scheduled(check):
		a.miss(ctx, s.Name(), tick, "the customer's switch is at "+string(state.Mode))
		return
	case a.jobs.Busy(s.Name()):
		a.miss(ctx, s.Name(), tick, "the run before was still going on")
		return
	}
	err = a.jobs.StartTick(runID, jobdir.Tick{Action: s.Name(), At: tick, HealthCheck: check, Script: script.Digest}, spec, func() error {
		return a.book.Advance(s.Name(), tick)
	})
	if err != nil {
		a.cfg.Log.ErrorContext(ctx, "scheduled run cannot be started", "action", s.Name(), "err", err)
	}
}

// miss reports a tick that was not run. The report is on disk before the book
// says that the tick is done: reporting it twice counts once, by its key.
func (a *agent) miss(ctx context.Context, action string, tick time.Time, why string) {
	err := a.reports.add(jobspec.Run{Action: action, ScheduledAt: tick, State: "missed", Error: why})
	if err == nil {
		err = a.book.Advance(action, tick)
	}
	if err != nil {
		a.cfg.Log.ErrorContext(ctx, "missed run cannot be told", "action", action, "err", a.disk.Failed(err))
	}
}
