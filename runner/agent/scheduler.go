package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

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
	// maxTurns is how many turns besides those of its schedule a look for drift may have.
	maxTurns = 8
	// runTimeout is for actions whose settings name none.
	runTimeout = 5 * time.Minute
)

// Why a tick was missed.
const (
	whyDown     = "the runner was not running"
	whyAsleep   = "the machine was asleep"
	whyFull     = "the disk of the runner's data directory was full"
	whyLate     = "the runner could not look in time: its machine was asleep, or a change of the component went on"
	whyOverlaps = "overlapping: the run before was still going on"
	whyExpired  = "the settings have expired: without the control plane for so long, the runner starts nothing that changes things"
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
			before := expired
			expired = !now.Before(settings.until())
			if expired && !before {
				a.cfg.Log.WarnContext(life, "settings have expired: only what reads is started by itself", "version", settings.Version)
				a.note(life, "settings have expired", fmt.Sprintf("version %d, at %s: only what reads is started by itself until newer ones come", settings.Version, settings.until().UTC().Format(time.RFC3339)))
			}
			plans := plansOf(slices.Concat(settings.Schedule, settings.Surveys))
			if err := a.book.Retain(func(name string) bool { return plans[name] != nil }); err != nil {
				a.cfg.Log.ErrorContext(life, "schedule cannot be written", "err", a.disk.Failed(err))
			}
			m := moment{settings: settings.Settings, started: started, now: now, expired: expired, looks: &[]dueLook{}}
			for _, name := range slices.Sorted(maps.Keys(plans)) {
				if at := a.look(life, plans[name], m); !at.IsZero() && at.Before(next) {
					next = at
				}
			}
			a.fireLooks(life, m)
		}
		if err := a.nextLook(work, life, look{at: next, or: [2]<-chan struct{}{renewed, nil}}); err != nil {
			return err
		}
	}
}

// look says when something is to be looked at again: at a time, or when one of the channels
// is closed.
type look struct {
	at time.Time
	or [2]<-chan struct{} // nil for none
}

// nextLook waits for it. After the end of work it waits for that of life, and says so.
func (a *agent) nextLook(work, life context.Context, l look) error {
	timer := time.NewTimer(l.at.Sub(a.cfg.Now()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.or[0]:
	case <-l.or[1]:
	case <-work.Done():
		<-life.Done()
		return context.Cause(life)
	case <-life.Done():
		return context.Cause(life)
	}
	return nil
}

// moment is one look at the clock.
type moment struct {
	settings     jobspec.Settings // in force
	started, now time.Time        // started is when the agent was
	expired      bool             // the settings: only what reads is started
	// looks collects the probes that are due, which are started together.
	looks *[]dueLook
}

// plan is all that settings schedule under one name: an action with several schedules
// is scheduled once for each.
type plan []jobspec.Scheduled

func plansOf(list []jobspec.Scheduled) map[string]plan {
	plans := map[string]plan{}
	for _, s := range list {
		plans[s.Name()] = append(plans[s.Name()], s)
	}
	return plans
}

// timed is what is scheduled, with its parsed schedule.
type timed struct {
	jobspec.Scheduled
	cron cron.Schedule
}

// All probes of an install are due at the same second: see fireLooks.
func (p plan) parse(installID string) (list []timed, err error) {
	for _, s := range p {
		parsed, bad := schedule.Parse(s.Cron)
		if bad != nil {
			err = errors.Join(err, bad)
			continue
		}
		switch {
		case s.Drift != nil:
			parsed = schedule.Spread(parsed, s.Probe.Resource.ID)
			parsed = schedule.Any(parsed, schedule.At(s.Drift.At[:min(maxTurns, len(s.Drift.At))]))
		case s.Probe != nil:
			parsed = schedule.Spread(parsed, installID)
		}
		list = append(list, timed{s, parsed})
	}
	return list, err
}

// look does what is due under one name and returns when to look again.
func (a *agent) look(ctx context.Context, p plan, m moment) time.Time {
	name := p[0].Name()
	log := a.cfg.Log.With("action", name)
	list, err := p.parse(m.settings.InstallID)
	if err != nil {
		log.ErrorContext(ctx, "action is not scheduled", "err", err)
	}
	if len(list) == 0 {
		return time.Time{}
	}
	var crons []cron.Schedule
	var texts []string
	for _, s := range list {
		crons, texts = append(crons, s.cron), append(texts, s.Cron)
	}
	last, err := a.book.Begin(name, strings.Join(texts, "; "), m.now)
	if err != nil {
		log.ErrorContext(ctx, "schedule cannot be written", "err", a.disk.Failed(err))
		return time.Time{} // another look tries again
	}
	if d := list[0].Drift; d != nil { // what somebody asked for may be older than the schedule
		for _, at := range d.At {
			if at = at.Truncate(time.Second); at.After(a.book.Last(name)) && !at.After(last) {
				last = at.Add(-time.Second)
			}
		}
	}
	every := schedule.Any(crons...)
	ticks := schedule.Due(every, schedule.Look{Last: last, Started: m.started, Now: m.now, CatchUp: list[0].Unattended || list[0].Drift != nil})
	for _, tick := range ticks.Missed {
		why := whyAsleep
		switch {
		case tick.Down:
			why = whyDown
		case a.disk.WasLow(tick.At):
			why = whyFull
		case list[0].Drift != nil:
			why = whyLate
		}
		a.miss(ctx, name, tick.At, why)
	}
	if !ticks.Fire.IsZero() {
		of := list[slices.IndexFunc(list, func(s timed) bool { return schedule.Has(s.cron, ticks.Fire) })]
		a.fire(ctx, m, of.Scheduled, due{at: ticks.Fire, until: ticks.Fire.Add(schedule.Grace(every, ticks.Fire))})
	}
	return ticks.Next
}

// due is a tick that is to be run, and how long its run may wait to begin.
type due struct{ at, until time.Time }

// fire starts the run of a tick, unless something stands against it; a probe when all that
// are due are known.
func (a *agent) fire(ctx context.Context, m moment, s jobspec.Scheduled, tick due) {
	if s.Probe != nil && s.Drift == nil && m.looks != nil {
		*m.looks = append(*m.looks, dueLook{s, tick})
		return
	}
	settings := m.settings
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
	switch p := s.Probe; {
	case p != nil && s.Drift != nil:
		if a.jobs.Busy(s.Name()) || a.jobs.Changes(p.Resource.ID) {
			return // another look at the schedule finds the tick again, until it is too late for it
		}
		spec.Operation, spec.Drift = jobspec.OperationDrift, a.driftLook(ctx, *s.Drift)
		fallthrough
	case p != nil:
		spec.Kind, spec.Resource, spec.Work = p.Kind, &p.Resource, p.Work
	default:
		spec.Action = &s.Action
	}
	script, why, err := a.mayRun(ctx, s)
	if err != nil {
		a.cfg.Log.ErrorContext(ctx, "scheduled run cannot be started", "action", s.Name(), "err", err)
		return
	}
	// What a script is follows from what was accepted, not from what settings say.
	if script.Script.Unattended {
		spec.Operation = jobspec.OperationTick
		s.Action.Inputs = map[string]string{} // a schedule brings no values
		for _, input := range script.Script.Inputs {
			s.Action.Inputs[input] = ""
		}
	}
	check := order.IsCheck(spec, script.Script.HealthCheck)
	state := a.power.Read()
	switch {
	case why != "":
	case m.expired && order.Mutates(spec):
		why = whyExpired
	case !state.Mode.Scheduled(check, order.Mutates(spec)):
		why = "the customer's switch is at " + string(state.Mode)
	case a.jobs.Busy(s.Name()):
		why = whyOverlaps
	}
	if why != "" {
		a.miss(ctx, s.Name(), tick.at, why)
		return
	}
	run := jobdir.Tick{Action: s.Name(), At: tick.at, HealthCheck: check, Script: script.Digest}
	if order.Mutates(spec) {
		run.Until = tick.until
	}
	err = a.jobs.StartTick(runID, run, spec, func() error { return a.book.Advance(s.Name(), tick.at) })
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
