// Package remedy decides what a runner does by itself about a check that is unhealthy,
// and remembers what it did. It works from the runner's own verdicts, from scripts that
// were accepted and from counts on the runner's disk, so that with the control plane
// away nothing changes but the reporting.
//
//	unhealthy ──▶ waiting ◀──▶ running ──▶ helped ──(stays healthy)──▶ ended
//	                 │            │  ▲        │
//	                 │            │  └────────┘ unhealthy again: the next attempt
//	                 │            └─▶ needs_attention ──(stays healthy)──▶ ended
//	                 └─▶ recovered: healthy before there was an attempt
package remedy

import (
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/verdict"
	"github.com/berth-dev/berth/runner/agent/power"
)

// Limits of one install, whatever its scripts say.
const (
	// PerHour and PerDay bound the attempts and reverts of all checks together.
	PerHour = 6
	PerDay  = 20
	// Calm is how long a check stays healthy, at least, before its attempts are counted
	// from zero again. It is longer for a longer cool-down.
	Calm = 30 * time.Minute
	// graceTicks is how many outcomes an attempt has to show an effect, besides those
	// that make a healthy verdict.
	graceTicks = 2
)

// Step is what to do about a check now.
type Step string

// The steps.
const (
	Nothing Step = "nothing"
	Wait    Step = "wait"    // something stands against an attempt: Why, maybe Until
	Start   Step = "start"   // the next attempt
	Revert  Step = "revert"  // no attempt helped: take them back
	Helped  Step = "helped"  // healthy after an attempt
	GiveUp  Step = "give_up" // no attempt helped: a person has to look
	End     Step = "end"     // it stayed healthy, or recovered before an attempt
)

// Decision is what to do, and why.
type Decision struct {
	Do    Step
	Why   string
	Until time.Time // zero when it does not end by itself
}

// Situation is all that a decision depends on.
type Situation struct {
	Now time.Time
	// Heal is what was accepted, CanRevert says that a revert was too.
	Heal      jobspec.Heal
	CanRevert bool
	// Verdict is that of Recent, newest first; Since is when it began.
	Verdict verdict.Verdict
	Since   time.Time
	Recent  []verdict.Outcome
	// Episode is what was done so far, nil for nothing.
	Episode *Episode
	// Starts are those of the install's last day.
	Starts []time.Time

	// Expired: the settings. Mode is the customer's switch.
	Expired bool
	Mode    power.Mode
	// Busy is what changes the install now, Held why the control plane holds attempts
	// back; "" for nothing.
	Busy string
	Held string
}

// Decide says what to do about a check now. It does no I/O.
func Decide(s Situation) Decision {
	e := s.Episode
	if e == nil {
		if s.Verdict != verdict.Unhealthy {
			return Decision{Do: Nothing}
		}
		return s.mayBegin(Start, time.Time{})
	}
	if e.Running() {
		return Decision{Do: Nothing}
	}
	switch s.Verdict {
	case verdict.Healthy:
		return s.healthy()
	case verdict.Unhealthy:
		return s.unhealthy()
	}
	return Decision{Do: Nothing} // silence: nobody knows
}

func (s Situation) healthy() Decision {
	e := s.Episode
	switch {
	case len(e.Attempts) == 0:
		return Decision{Do: End}
	case e.State == jobspec.RemediationRunning || e.State == jobspec.RemediationWaiting:
		return Decision{Do: Helped}
	}
	if calm := s.Since.Add(max(Calm, s.Heal.Cooldown())); s.Now.Before(calm) {
		return Decision{Do: Nothing, Until: calm}
	}
	return Decision{Do: End}
}

func (s Situation) unhealthy() Decision {
	e := s.Episode
	if e.State == jobspec.RemediationNeedsAttention {
		return Decision{Do: Nothing}
	}
	if len(e.Attempts) == 0 {
		return s.mayBegin(Start, time.Time{})
	}
	last := e.Attempts[len(e.Attempts)-1]
	switch {
	case e.Revert != nil:
		return Decision{Do: GiveUp, Why: s.failed() + "; it was taken back" + unless(e.Revert.OK, ", which failed: "+e.Revert.Error)}
	case !s.judged(last):
		return Decision{Do: Nothing} // the next outcomes tell
	case len(e.Attempts) < s.Heal.Attempts:
		return s.mayBegin(Start, last.Ended.Add(s.Heal.Cooldown()))
	case s.CanRevert:
		return s.mayBegin(Revert, time.Time{})
	}
	return Decision{Do: GiveUp, Why: s.failed()}
}

func (s Situation) failed() string {
	last := s.Episode.Attempts[len(s.Episode.Attempts)-1]
	text := fmt.Sprintf("%s is still unhealthy after %d of %d attempts", s.Heal.Check, len(s.Episode.Attempts), s.Heal.Attempts)
	return text + unless(last.OK, ", the last of which failed: "+last.Error)
}

func unless(ok bool, text string) string {
	if ok {
		return ""
	}
	return text
}

// judged says whether the outcomes after an attempt are enough to tell that it did not
// help: as many as make an unhealthy verdict are bad, or it had its time.
func (s Situation) judged(a Attempt) bool {
	after, bad := 0, 0
	inARow := true
	for _, o := range s.Recent {
		if !o.At.After(a.Ended) {
			break
		}
		after++
		if inARow = inARow && !o.Good; inARow {
			bad++
		}
	}
	return bad >= s.Heal.UnhealthyAfter || after >= min(s.Heal.HealthyAfter+graceTicks, verdict.MaxRecent)
}

// mayBegin is step when nothing stands against it.
func (s Situation) mayBegin(step Step, cooledDown time.Time) Decision {
	wait := func(until time.Time, why string, args ...any) Decision {
		return Decision{Do: Wait, Until: until, Why: fmt.Sprintf(why, args...)}
	}
	free, limit := s.budget()
	switch {
	case len(s.Recent) == 0 || s.Recent[0].Good:
		return wait(time.Time{}, "the newest outcome of %s is good", s.Heal.Check)
	case s.Now.Before(cooledDown):
		return wait(cooledDown, "the cool-down of %s after the last attempt", s.Heal.Cooldown())
	case s.Expired:
		return wait(time.Time{}, "the settings have expired: without the control plane for so long, the runner starts nothing that changes things")
	case s.Mode != power.Run:
		return wait(time.Time{}, "the customer's switch is at %s", s.Mode)
	case s.Now.Before(free):
		return wait(free, "the install had its %s", limit)
	case s.Busy != "":
		return wait(time.Time{}, "%s, which changes the install", s.Busy)
	case s.Held != "":
		return wait(time.Time{}, "%s", s.Held)
	}
	return Decision{Do: step}
}

// budget is when the install has room for another attempt, and which limit that is. A
// start in the future, of a clock that was set back, counts.
func (s Situation) budget() (free time.Time, limit string) {
	for _, l := range []struct {
		most int
		in   time.Duration
		text string
	}{{PerHour, time.Hour, fmt.Sprintf("%d remediations of an hour", PerHour)}, {PerDay, 24 * time.Hour, fmt.Sprintf("%d remediations of a day", PerDay)}} {
		var within []time.Time // oldest first
		for _, at := range s.Starts {
			if s.Now.Sub(at) < l.in {
				within = append(within, at)
			}
		}
		if over := len(within) - l.most; over >= 0 {
			if at := within[over].Add(l.in); at.After(free) {
				free, limit = at, l.text
			}
		}
	}
	return free, limit
}
