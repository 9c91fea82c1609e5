package consents

import (
	"context"
	"errors"
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
	// pruneEvery is how often what is old is forgotten.
	pruneEvery = time.Hour
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
// It hears of changes by Run.
func (g *Gate) Tell(ctx context.Context, put func(context.Context, []runnerapi.Consent) error, failed func(error)) error {
	var told []runnerapi.Consent
	changed := true
	for {
		news := g.news()
		now, err := g.reports()
		if err == nil && len(now)+len(told) > 0 && (!changed || !reflect.DeepEqual(now, told)) {
			if err = put(ctx, now); err == nil {
				told = now
			}
		}
		if err != nil && ctx.Err() == nil {
			failed(err)
		}
		if changed, err = await(ctx, news); err != nil {
			return err
		}
	}
}

// Run puts new standing rules in force, and forgets what is old, until ctx ends.
func (g *Gate) Run(ctx context.Context, record func(context.Context, chain.Record) error, failed func(error)) error {
	if err := g.Make(); err != nil {
		return err
	}
	files, end, err := dirwatch.Watch(g.Dir.Consents())
	if err != nil {
		return err
	}
	defer end()
	g.publish() // what changed before somebody watched
	var pruned time.Time
	for {
		err := g.enforce(ctx, record)
		if now := g.Now(); now.Sub(pruned).Abs() > pruneEvery {
			pruned = now
			err = errors.Join(err, g.Prune())
		}
		if err != nil && ctx.Err() == nil {
			failed(err)
		}
		changed, err := await(ctx, files)
		if err != nil {
			return err
		}
		if changed {
			g.publish()
		}
	}
}

// await waits for news, or until it is time to look without any.
func await(ctx context.Context, news <-chan struct{}) (changed bool, err error) {
	timer := time.NewTimer(lookAgain)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-news:
		return true, nil
	case <-timer.C:
		return false, nil
	}
}

// news is closed when a file of the directory has changed.
func (g *Gate) news() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

func (g *Gate) publish() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.changed)
	g.changed = make(chan struct{})
}
