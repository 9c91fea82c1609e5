package agent

import (
	"context"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/jobdir"
)

// looksTogether is what the run of several probes is called where one name is needed. No
// action can have it.
const looksTogether = jobspec.ProbePrefix + "*"

// maxLooks bounds the probes of one engine.
const maxLooks = 200

// dueLook is a probe with its tick.
type dueLook struct {
	jobspec.Scheduled
	tick due
}

// fireLooks starts the probes that are due: those of one cluster by one engine, since to start
// one and to connect costs more than to look. Each is a run of its own all the same.
func (a *agent) fireLooks(ctx context.Context, m moment) {
	all := *m.looks
	m.looks = nil
	for len(all) > 0 {
		var together, rest []dueLook
		for _, d := range all {
			if len(together) < maxLooks && jobspec.SameCluster(*all[0].Probe, *d.Probe) {
				together = append(together, d)
			} else {
				rest = append(rest, d)
			}
		}
		all = rest
		if len(together) == 1 {
			a.fire(ctx, m, together[0].Scheduled, together[0].tick)
			continue
		}
		a.lookAtAll(ctx, m, together)
	}
}

// lookAtAll starts several probes of one cluster.
func (a *agent) lookAtAll(ctx context.Context, m moment, together []dueLook) {
	spec := jobspec.Spec{
		Version: jobspec.Version, JobID: id.New(id.ActionRun), OrgID: m.settings.OrgID, InstallID: m.settings.InstallID,
		Kind: jobspec.KindProbes, Operation: jobspec.OperationRun, State: m.settings.State, StateVersion: m.settings.StateVersion,
	}
	tick := jobdir.Tick{Action: looksTogether, HealthCheck: true}
	mode := a.power.Read().Mode
	for _, d := range together {
		why := ""
		switch {
		case !mode.Scheduled(true, false):
			why = "the customer's switch is at " + string(mode)
		case a.jobs.Busy(d.Name()):
			why = whyOverlaps
		}
		if why != "" {
			a.miss(ctx, d.Name(), d.tick.at, why)
			continue
		}
		spec.Probes = append(spec.Probes, *d.Probe)
		spec.TimeoutSeconds = max(spec.TimeoutSeconds, d.TimeoutSeconds)
		tick.Looks = append(tick.Looks, jobdir.Look{RunID: id.New(id.ActionRun), Action: d.Name(), At: d.tick.at})
		tick.At = d.tick.at
	}
	if len(tick.Looks) == 0 {
		return
	}
	err := a.jobs.StartTick(spec.JobID, tick, spec, func() error { return a.advanceAll(tick) })
	if err != nil {
		a.cfg.Log.ErrorContext(ctx, "probes cannot be started", "probes", len(tick.Looks), "err", err)
	}
}

// advanceAll writes into the book that a tick, or each look of it, is done.
func (a *agent) advanceAll(tick jobdir.Tick) error {
	if len(tick.Looks) == 0 {
		return a.book.Advance(tick.Action, tick.At)
	}
	ticks := make(map[string]time.Time, len(tick.Looks))
	for _, look := range tick.Looks {
		ticks[look.Action] = look.At
	}
	return a.book.AdvanceAll(ticks)
}
