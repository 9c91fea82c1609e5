package agent

import (
	"cmp"
	"context"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/egress"
	"github.com/berth-dev/berth/runner/agent/gauges"
	"github.com/berth-dev/berth/runner/agent/samples"
)

const (
	// sampleEvery is how often the vendor gets the runner's own numbers: each costs the
	// control plane a row per series.
	sampleEvery = 5 * time.Minute
	// refusedFor is how long no report is tried after one that was refused: an older
	// control plane does not know them.
	refusedFor = time.Hour
)

// tellNumbers reports the runner's own numbers, until life ends. What cannot be sent waits.
func (a *agent) tellNumbers(life context.Context) error {
	sampler := gauges.NewSampler(a.numbers, a.times)
	spool := samples.Open(a.dir.Samples())
	tick := time.NewTicker(cmp.Or(a.cfg.SampleEvery, sampleEvery))
	defer tick.Stop()
	var quiet time.Time // no report before
	for {
		select {
		case <-life.Done():
			return context.Cause(life)
		case <-tick.C:
		}
		now := a.cfg.Now().UTC()
		spool.Add(sampler.Sample(now))
		switch {
		case a.switches.Off(egress.Metrics), now.Before(quiet):
			spool.Drop() // also what waited when it was switched off
		default:
			if refused := a.sendSamples(life, spool); refused != nil {
				a.cfg.Log.WarnContext(life, "the control plane does not take the runner's own numbers", "next_try", refusedFor, "err", refused)
				quiet = now.Add(refusedFor)
			}
		}
		if err := spool.Save(); err != nil {
			a.cfg.Log.WarnContext(life, "numbers that wait cannot be written", "err", err)
		}
	}
}

// sendSamples sends what waits, oldest first, while it goes. An error is a refusal, after which
// nothing waits.
func (a *agent) sendSamples(life context.Context, spool *samples.Spool) error {
	for next := spool.Next(); len(next) > 0; next = spool.Next() {
		err := a.api.ReportSamples(life, jobspec.Samples{Samples: next})
		switch {
		case err != nil && control.Away(err):
			return nil
		case err != nil:
			spool.Drop()
			return err
		}
		spool.Done(len(next))
	}
	return nil
}
