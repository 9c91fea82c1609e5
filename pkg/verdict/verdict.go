// Package verdict turns the outcomes of checks into verdicts, from the last outcomes
// alone. The control plane judges by it, and so does a runner, which acts on verdicts
// while the control plane is away.
package verdict

import (
	"time"

	"github.com/robfig/cron/v3"
)

// Verdict is what is known about health.
type Verdict string

// The verdicts.
const (
	Unknown   Verdict = "unknown" // not enough outcomes, or silence
	Healthy   Verdict = "healthy"
	Unhealthy Verdict = "unhealthy"
)

const (
	// MaxRecent is how many outcomes of a check are kept to judge by.
	MaxRecent = 20
	// silentTicks is how many ticks of its schedule a check may miss before it
	// counts as silent.
	silentTicks = 3
)

// Outcome is how one run of a check ended.
type Outcome struct {
	RunID string `json:"run_id"`
	Good  bool   `json:"good"`
	// Unknown: it was good, and of a part of it nobody can tell.
	Unknown bool      `json:"unknown,omitempty"`
	At      time.Time `json:"at"`
}

// Rules say how many outcomes in a row make a verdict.
type Rules struct {
	// UnhealthyAfter bad outcomes in a row are unhealthy.
	UnhealthyAfter int
	// HealthyAfter good outcomes in a row are healthy again. From unknown, one
	// good outcome is enough: nothing speaks against it.
	HealthyAfter int
	// SilentAfter without any outcome is unknown; 0 means silence is allowed.
	SilentAfter time.Duration
}

// Evaluate judges a check by its last outcomes, newest first. It does no I/O.
// Between the thresholds the present verdict stays.
func Evaluate(present Verdict, recent []Outcome, rules Rules, now time.Time) Verdict {
	if len(recent) == 0 {
		return Unknown
	}
	if rules.SilentAfter > 0 && now.Sub(recent[0].At) > rules.SilentAfter {
		return Unknown
	}
	inARow := 0
	for _, o := range recent {
		if o.Good != recent[0].Good {
			break
		}
		inARow++
	}
	switch {
	case recent[0].Good && (inARow >= rules.HealthyAfter || present == Unknown && inARow == len(recent)):
		if recent[0].Unknown {
			return Unknown
		}
		return Healthy
	case !recent[0].Good && inARow >= rules.UnhealthyAfter:
		return Unhealthy
	}
	return present
}

// Worst is the verdict of several: one unhealthy makes all unhealthy, one
// unknown makes healthy ones unknown; without any it is unknown.
func Worst(all []Verdict) Verdict {
	if len(all) == 0 {
		return Unknown
	}
	worst := Healthy
	for _, v := range all {
		switch v {
		case Unhealthy:
			return Unhealthy
		case Unknown:
			worst = Unknown
		}
	}
	return worst
}

// Silence is how long no outcome of a check may come: some ticks of the most frequent
// of its schedules and one run. Zero without a schedule.
func Silence(crons []string, run time.Duration) time.Duration {
	var longest time.Duration
	for _, expr := range crons {
		schedule, err := cron.ParseStandard("CRON_TZ=UTC " + expr) // a zone without more makes the parser panic
		if err != nil {
			continue // validation refuses such a config
		}
		from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		first := schedule.Next(from)
		for range silentTicks {
			first = schedule.Next(first)
		}
		if d := first.Sub(schedule.Next(from)) + run; longest == 0 || d < longest {
			longest = d
		}
	}
	return longest
}
