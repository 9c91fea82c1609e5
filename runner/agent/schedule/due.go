// Package schedule decides when the runner starts actions by itself. It works
// from settings that the control plane has signed, so that with the control
// plane away nothing changes but the reporting.
//
// Each tick of an action is one run, also over restarts: the run's directory is
// on disk first, then the book says that the tick is done, then the engine
// starts.
package schedule

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/robfig/cron/v3"
)

const (
	// MaxMissed is how many missed ticks of one action are reported at once:
	// the newest ones. Nobody reads more.
	MaxMissed = 100
	// lateness is how old a tick may be to be run still: a busy machine is
	// late, a machine that slept has missed it.
	lateness = 30 * time.Second
)

// Ticks are the ticks of one action since it was last looked at.
type Ticks struct {
	// Missed are to be reported, oldest first.
	Missed []time.Time
	// Fire is to be run now; zero for none.
	Fire time.Time
	// Next is when to look again.
	Next time.Time
}

// Due lists the ticks in (last, now]. starting says that the agent was not
// running in that time, so that all of them were missed.
func Due(s cron.Schedule, last, now time.Time, starting bool) Ticks {
	var t Ticks
	at := s.Next(last.UTC())
	for ; !at.IsZero() && !at.After(now); at = s.Next(at) {
		if !t.Fire.IsZero() {
			t.Missed = append(t.Missed, t.Fire)
			t.Fire = time.Time{}
		}
		if len(t.Missed) > MaxMissed {
			t.Missed = append(t.Missed[:0], t.Missed[1:]...)
		}
		if starting || now.Sub(at) > lateness {
			t.Missed = append(t.Missed, at)
		} else {
			t.Fire = at
		}
	}
	if n := len(t.Missed); n > MaxMissed {
		t.Missed = t.Missed[n-MaxMissed:]
	}
	t.Next = at
	return t
}

// Spread moves a schedule by less than a minute, always by the same for the same
// name: what runs each minute in many places, or for many things, must not all
// run at once.
func Spread(s cron.Schedule, name string) cron.Schedule {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // cannot fail
	return shifted{Schedule: s, by: time.Duration(h.Sum32()%60) * time.Second}
}

type shifted struct {
	cron.Schedule
	by time.Duration
}

// Next implements cron.Schedule.
func (s shifted) Next(after time.Time) time.Time {
	next := s.Schedule.Next(after.Add(-s.by))
	if next.IsZero() {
		return next
	}
	return next.Add(s.by)
}

// Parse reads a standard expression of five fields, in UTC.
func Parse(expression string) (cron.Schedule, error) {
	s, err := cron.ParseStandard("CRON_TZ=UTC " + expression)
	if err != nil {
		return nil, fmt.Errorf("schedule %q: %w", expression, err)
	}
	return s, nil
}
