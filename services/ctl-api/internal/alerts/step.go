package alerts

import (
	"strings"
	"time"

	"github.com/berth-dev/berth/services/internal/model"
)

const (
	// gather is how long telling waits for the same cause in other installs: one
	// incident instead of one alert for each. What is over by then is not told.
	gather = 30 * time.Second
	// Grace is how long planned work still holds an alert back after its end.
	Grace = 10 * time.Minute
	// longestWork is how long a change that does not end holds an alert back.
	longestWork = 2 * time.Hour
	// between stands between the parts of a cause.
	between = " | "
)

// Seen is what a look saw of something.
type Seen string

// What can be seen. Gone is not observed: it is an alert whose subject nobody
// speaks of any more.
const (
	Good    Seen = "good"
	Bad     Seen = "bad"
	Unknown Seen = "unknown" // nobody knows: an open alert stays, and none opens
	Gone    Seen = "gone"
)

// Observation is what one source says of one thing that may be wrong with an install.
type Observation struct {
	Kind model.AlertKind
	// Subject is what it is about within the install: a check, a role. Together with the
	// kind it is the same for the whole episode.
	Subject string
	Seen    Seen
	// Since is since when it is as seen.
	Since time.Time
	// Text is what is wrong, in one line. It leaves the control plane: no output of a
	// tool, no value of an input.
	Text string
	// Cause is what other installs may have in common; zero for nothing.
	Cause Cause
	// Heals is until when something is being done about it without a person, which holds
	// the alert back as planned work does; zero for nothing.
	Heals time.Time
	// Turns is when something that is not bad will be, if nothing happens; zero for never.
	Turns time.Time
}

// Cause is what makes alerts of several installs one incident.
type Cause struct {
	Of            string // such as a component
	ReleaseID     string
	RunnerVersion string
}

// Key is the cause as it is stored; "" for none.
func (o Observation) Key() string {
	if o.Cause == (Cause{}) {
		return ""
	}
	return strings.Join([]string{string(o.Kind), o.Cause.Of, o.Cause.ReleaseID, o.Cause.RunnerVersion}, between)
}

// AboutOf is what a cause is of, by its key.
func AboutOf(key string) string {
	if parts := strings.Split(key, between); len(parts) > 1 {
		return parts[1]
	}
	return ""
}

// Alert is how far an episode has come. The zero value is that there is none.
type Alert struct {
	Kind      model.AlertKind
	State     model.AlertState
	Since     time.Time // since when it is bad
	Hold      model.AlertHold
	HoldUntil time.Time
	OpenedAt  time.Time
	TellAt    time.Time // when people are told
	ToldAt    time.Time // when they were
	GoodSince time.Time // zero while it is bad
	Relapses  int       // how often it was bad again within the clear window
	ClosedAt  time.Time
	Because   model.AlertClosedBecause
	// LookAt is when to decide again, if nothing happens before; zero for never.
	LookAt time.Time
}

// Around is what else counts.
type Around struct {
	Now time.Time
	// Muted and Planned are until when somebody, or planned work, holds this back; zero
	// for not at all.
	Muted, Planned time.Time
}

// Step decides what becomes of an episode after a look; the zero Alert is that there
// is none, or none any more.
func Step(a Alert, o Observation, in Around) Alert {
	if a.State == model.AlertOpen {
		return a.stepOpen(o, in.Now)
	}
	if o.Seen != Bad {
		return Alert{} // nobody was told
	}
	a = Alert{Kind: o.Kind, Since: o.Since}
	if o.Heals.After(in.Planned) {
		in.Planned = o.Heals
	}
	a.Hold, a.HoldUntil = heldBack(a, in)
	if a.Hold != "" {
		a.State, a.LookAt = model.AlertHeld, a.HoldUntil
		return a
	}
	a.State, a.OpenedAt, a.TellAt = model.AlertOpen, in.Now, in.Now
	if o.Key() != "" {
		a.TellAt = in.Now.Add(gather)
	}
	a.LookAt = a.due()
	return a
}

// heldBack says whether nobody is told yet.
func heldBack(a Alert, in Around) (model.AlertHold, time.Time) {
	if until := a.Since.Add(RulesOf(a.Kind).OpenAfter); until.After(in.Now) {
		return model.HoldTooEarly, until
	}
	if in.Muted.After(in.Now) {
		return model.HoldMuted, in.Muted
	}
	if in.Planned.After(in.Now) && RulesOf(a.Kind).Planned {
		return model.HoldPlannedWork, in.Planned
	}
	return "", time.Time{}
}

func (a Alert) stepOpen(o Observation, now time.Time) Alert {
	if o.Seen != Good && !a.GoodSince.IsZero() && o.Since.Sub(a.GoodSince) >= RulesOf(a.Kind).ClearAfter {
		return a.closed(model.ClosedRecovered, now) // nobody looked in time; what began after the window is another episode
	}
	switch o.Seen {
	case Gone:
		return a.closed(model.ClosedGone, now)
	case Unknown:
		a.GoodSince = time.Time{}
	case Bad:
		if !a.GoodSince.IsZero() {
			a.Relapses++
		}
		a.GoodSince = time.Time{}
	case Good:
		if a.GoodSince.IsZero() {
			a.GoodSince = now
		}
		if !now.Before(a.GoodSince.Add(RulesOf(a.Kind).ClearAfter)) {
			return a.closed(model.ClosedRecovered, now)
		}
	}
	a.LookAt = a.due()
	return a
}

// due is when an open alert has to be looked at next.
func (a Alert) due() time.Time {
	switch {
	case !a.GoodSince.IsZero():
		return a.GoodSince.Add(RulesOf(a.Kind).ClearAfter)
	case a.ToldAt.IsZero():
		return a.TellAt
	}
	return time.Time{}
}

// closed is the end of an episode; nothing is left of one that nobody was told of.
func (a Alert) closed(because model.AlertClosedBecause, now time.Time) Alert {
	if a.ToldAt.IsZero() {
		return Alert{}
	}
	a.State, a.ClosedAt, a.Because, a.LookAt = model.AlertClosed, now, because, time.Time{}
	return a
}

// Untold says that people are to be told now.
func (a Alert) Untold(now time.Time) bool {
	return a.State == model.AlertOpen && a.ToldAt.IsZero() && a.GoodSince.IsZero() && !now.Before(a.TellAt)
}

// Told is the alert once people were told.
func (a Alert) Told(now time.Time) Alert {
	a.ToldAt = now
	a.LookAt = a.due()
	return a
}

// Earlier is the earlier of two times that is set; zero when none is.
func Earlier(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}
