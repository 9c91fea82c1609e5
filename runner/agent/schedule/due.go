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
	// maxGrace is the longest that a tick may be caught up: a night's work is not done
	// in the middle of the day.
	maxGrace = time.Hour
)

// Look is one look at the schedule of an action.
type Look struct {
	// Last is the last tick that was run or told.
	Last time.Time
	// Started is when the agent was: what came before, it has not lived through.
	Started time.Time
	Now     time.Time
	// CatchUp: the newest tick, when it was missed, is still run once within its
	// Grace. That is for actions that do something. A late health check says nothing.
	CatchUp bool
}

// Missed is a tick without a run.
type Missed struct {
	At time.Time
	// Down: the agent was not running at that time.
	Down bool
}

// Ticks are the ticks of one action since it was last looked at.
type Ticks struct {
	// Missed are to be reported, oldest first.
	Missed []Missed
	// Fire is to be run now; zero for none.
	Fire time.Time
	// Next is when to look again.
	Next time.Time
}

// Due lists the ticks in (Last, Now]. Only the newest of them can be run.
func Due(s cron.Schedule, look Look) Ticks {
	var t Ticks
	at := s.Next(look.Last.UTC())
	for ; !at.IsZero() && !at.After(look.Now); at = s.Next(at) {
		if !t.Fire.IsZero() {
			t.miss(t.Fire, look)
			t.Fire = time.Time{}
		}
		late := look.Now.Sub(at)
		if look.lived(at) && late <= lateness || look.CatchUp && late <= Grace(s, at) {
			t.Fire = at
		} else {
			t.miss(at, look)
		}
	}
	t.Next = at
	return t
}

func (l Look) lived(at time.Time) bool { return at.After(l.Started) }

func (t *Ticks) miss(at time.Time, look Look) {
	if len(t.Missed) == MaxMissed {
		t.Missed = append(t.Missed[:0], t.Missed[1:]...)
	}
	t.Missed = append(t.Missed, Missed{At: at, Down: !look.lived(at)})
}

// Grace is how late a tick may still be run: half the time to the next one, an hour
// at most.
func Grace(s cron.Schedule, tick time.Time) time.Duration {
	next := s.Next(tick)
	if next.IsZero() {
		return maxGrace
	}
	return min(next.Sub(tick)/2, maxGrace)
}

// Any is the schedule of an action with several: each tick of any of them, once.
func Any(list ...cron.Schedule) cron.Schedule {
	if len(list) == 1 {
		return list[0]
	}
	return several(list)
}

type several []cron.Schedule

// Next implements cron.Schedule.
func (a several) Next(after time.Time) (next time.Time) {
	for _, s := range a {
		if at := s.Next(after); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// Has says whether a schedule has this tick.
func Has(s cron.Schedule, tick time.Time) bool {
	return s.Next(tick.Add(-time.Second)).Equal(tick)
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

// At is the schedule of these moments, in whole seconds.
func At(moments []time.Time) cron.Schedule {
	list := make(once, 0, len(moments))
	for _, m := range moments {
		list = append(list, m.UTC().Truncate(time.Second))
	}
	return list
}

type once []time.Time

// Next implements cron.Schedule.
func (o once) Next(after time.Time) (next time.Time) {
	for _, at := range o {
		if at.After(after) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// Parse reads a standard expression of five fields, in UTC.
func Parse(expression string) (cron.Schedule, error) {
	s, err := cron.ParseStandard("CRON_TZ=UTC " + expression)
	if err != nil {
		return nil, fmt.Errorf("schedule %q: %w", expression, err)
	}
	return s, nil
}
