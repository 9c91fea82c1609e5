// Package health turns the outcomes of checks into verdicts. Evaluate decides,
// from the last outcomes alone; Judge reads and writes the rows.
package health

import "time"

// Verdict is what is known of the health of a check, a resource or an install.
type Verdict string

// The verdicts.
const (
	Unknown   Verdict = "unknown" // not enough outcomes, or silence
	Healthy   Verdict = "healthy"
	Unhealthy Verdict = "unhealthy"
)

// Outcome is how one run of a check ended.
type Outcome struct {
	RunID string    `json:"run_id"`
	Good  bool      `json:"good"`
	At    time.Time `json:"at"`
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
