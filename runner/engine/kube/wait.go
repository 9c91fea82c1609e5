package kube

import (
	"context"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
)

// WaitOptions bound a wait. The zero value waits until ctx ends.
type WaitOptions struct {
	// Gone waits until the objects are no longer there.
	Gone bool
	// FailFast ends the wait as soon as an object is Failed.
	FailFast bool
	// Jobs waits until Jobs have completed. Of one that failed, with FailFast, the
	// last lines of its newest pods are logged.
	Jobs bool
	// Every is how often the objects are asked for; 0 begins with 100 ms and
	// slows down to 1 s.
	Every time.Duration
}

const (
	firstEvery = 100 * time.Millisecond // small things are ready at once
	lastEvery  = time.Second
	// repeatEvery is how often a line is repeated that has not changed.
	repeatEvery = 10 * time.Second
)

// Teller takes what a wait has to tell: a *job.Job.
type Teller interface {
	Logf(format string, args ...any)
	Show(jobspec.Progress)
}

// Wait waits until all objects are ready. It logs a line per object that waits
// and why, when that changes and at least every 10 s, and shows the first of them
// as what is waited for now. When ctx ends first, the error is a failure that
// names what waits and why.
func (c *Cluster) Wait(ctx context.Context, refs []Ref, to Teller, opts WaitOptions) error {
	w := waiting{log: to.Logf, gone: opts.Gone, began: time.Now(), total: len(refs), said: map[Ref]string{}, at: map[Ref]time.Time{}}
	defer to.Show(jobspec.Progress{})
	left := refs
	every := opts.Every
	if every == 0 {
		every = firstEvery
	}
	for {
		var statuses []Status
		over := false
		for _, ref := range left {
			s, err := c.waitStatus(ctx, ref, opts)
			if over = ctx.Err() != nil || noTime(err); over {
				break // what was seen last says more
			}
			if err != nil {
				s = Status{Object: ref, Reason: err.Error()} // the API server may be away for a moment
			}
			statuses = append(statuses, s)
		}
		if !over {
			if left = w.seen(statuses, time.Now()); len(left) == 0 {
				return nil
			}
			to.Show(w.progress())
			if opts.FailFast && w.failed() {
				if opts.Jobs {
					c.logJobs(ctx, w.last, to)
				}
				return w.failure()
			}
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return w.failure()
		}
		if opts.Every == 0 {
			every = min(every*3/2, lastEvery)
		}
	}
}

// noTime says whether a request was not made because ctx would end before its turn comes: the
// client spreads its requests over time, and says so in words only.
func noTime(err error) bool {
	return err != nil && strings.Contains(err.Error(), "would exceed context deadline")
}

// jobLines is how many lines of each container of a failed Job are logged.
const jobLines = 20

func (c *Cluster) logJobs(ctx context.Context, statuses []Status, to Teller) {
	for _, s := range statuses {
		if !s.Failed || s.Object.Kind != "Job" {
			continue
		}
		if obj, err := c.Get(ctx, s.Object); err == nil && obj != nil {
			c.LastLines(ctx, obj, jobLines, func(line string) { to.Logf("%s", line) })
		}
	}
}

func (c *Cluster) waitStatus(ctx context.Context, ref Ref, opts WaitOptions) (Status, error) {
	if !opts.Gone {
		s, err := c.status(ctx, ref)
		s.Ready = s.Ready && !(opts.Jobs && s.Runs)
		return s, err
	}
	obj, err := c.Get(ctx, ref)
	if err != nil || obj == nil {
		return Status{Object: ref, Ready: err == nil}, err
	}
	s := Status{Object: ref, Reason: "is still there"}
	if obj.GetDeletionTimestamp() == nil {
		s.Reason = "is not being removed"
	} else if finalizers := obj.GetFinalizers(); len(finalizers) > 0 {
		s.Reason += ", until its finalizers are served: " + text(finalizers)
	}
	return s, nil
}

// waiting is what a wait has seen last and what it has said.
type waiting struct {
	log   func(format string, args ...any)
	gone  bool
	began time.Time
	total int // objects that are waited for, ready or not
	last  []Status
	said  map[Ref]string
	at    map[Ref]time.Time
}

// progress is the first object that is not ready, since the wait began.
func (w *waiting) progress() jobspec.Progress {
	if len(w.last) == 0 {
		return jobspec.Progress{}
	}
	return jobspec.Progress{
		What: w.last[0].Object.Shown(), Doing: w.last[0].Reason, Since: w.began, Done: w.total - len(w.last), Total: w.total,
	}
}

// seen takes the statuses, logs what is new and returns the objects that are
// not ready.
func (w *waiting) seen(statuses []Status, now time.Time) []Ref {
	var left []Ref
	w.last = w.last[:0]
	for _, s := range statuses {
		before, waited := w.said[s.Object]
		if s.Ready {
			switch {
			case waited && w.gone:
				w.log("%s is gone", s.Object)
			case waited:
				w.log("%s is ready", s.Object)
			}
			continue
		}
		left, w.last = append(left, s.Object), append(w.last, s)
		if !waited || before != s.Reason || now.Sub(w.at[s.Object]) >= repeatEvery {
			w.log("waiting for %s: %s", s.Object, s.Reason)
			w.said[s.Object], w.at[s.Object] = s.Reason, now
		}
	}
	return left
}

func (w *waiting) failed() bool {
	for _, s := range w.last {
		if s.Failed {
			return true
		}
	}
	return false
}

func (w *waiting) failure() error {
	what := "not ready: "
	if w.gone {
		what = "not removed: "
	}
	why := NotReady(w.last)
	if why == "" {
		why = "the wait ended before the first look"
	}
	return job.Failf("correct what they say, then try again", "%s%s", what, why)
}

// Applying is the progress of who writes an object, after done of total.
func Applying(ref Ref, done, total int) jobspec.Progress {
	return jobspec.Progress{What: ref.Shown(), Doing: "applying", Since: time.Now(), Done: done, Total: total}
}
