package consents

import (
	"context"
	"reflect"
	"time"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/dirwatch"
)

const (
	// lookAgain is when the loops look although no file has changed: a window may have
	// closed, trust.json may say something else. What is told is told again then, too: the
	// control plane skips what it hears before the plan.
	lookAgain = time.Minute
	// maxTold and maxWhy are what a report takes.
	maxTold = 1000
	maxWhy  = 1000
)

// Report is what the control plane is told of one change.
func Report(c Change, stand consent.Stand) runnerapi.Consent {
	r := runnerapi.Consent{ChangeID: c.ID, EffectDigest: c.Effect, State: runnerapi.ConsentState(stand.State)}
	if stand.Why != "" {
		why := jobspec.CutText(stand.Why, maxWhy)
		r.Why = &why
	}
	if len(stand.By) > 0 {
		r.By = &stand.By
	}
	if stand.State == consent.Needed {
		r.Still = &stand.Still
	}
	if !stand.At.IsZero() && stand.Rule == "" {
		r.At = &stand.At
	}
	if !stand.Until.IsZero() {
		r.Until = &stand.Until
	}
	return r
}

// reports are the newest words on the changes that are open.
func (g *Gate) reports() ([]runnerapi.Consent, error) {
	changes, err := g.Changes()
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	view, err := g.view()
	g.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var told []runnerapi.Consent
	for _, c := range view.Open(changes) {
		stand := view.Stand(c)
		if c.IsScript() || stand.State == consent.NotAsked || len(told) == maxTold {
			continue
		}
		told = append(told, Report(c, stand))
	}
	return told, nil
}

// Tell tells the control plane, at once and whenever something changes, until ctx ends.
func (g *Gate) Tell(ctx context.Context, put func(context.Context, []runnerapi.Consent) error, failed func(error)) error {
	var told []runnerapi.Consent
	return g.loop(ctx, func(changed bool) {
		now, err := g.reports()
		if err == nil && len(now)+len(told) > 0 && (!changed || !reflect.DeepEqual(now, told)) {
			if err = put(ctx, now); err == nil {
				told = now
			}
		}
		if err != nil && ctx.Err() == nil {
			failed(err)
		}
	})
}

// Run puts new standing rules in force until ctx ends.
func (g *Gate) Run(ctx context.Context, record func(context.Context, chain.Record) error, failed func(error)) error {
	return g.loop(ctx, func(bool) {
		if err := g.enforce(ctx, record); err != nil && ctx.Err() == nil {
			failed(err)
		}
	})
}

// loop does something now, when a file changes, and every so often.
func (g *Gate) loop(ctx context.Context, do func(changed bool)) error {
	if err := g.Make(); err != nil {
		return err
	}
	files, end, err := dirwatch.Watch(g.Dir.Consents())
	if err != nil {
		return err
	}
	defer end()
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	changed := true
	for {
		do(changed)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-files:
			changed = true
		case <-ticker.C:
			changed = false
		}
	}
}
