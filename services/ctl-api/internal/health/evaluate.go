// Package health turns the outcomes of checks into verdicts. Evaluate decides,
// from the last outcomes alone; Judge reads and writes the rows.
package health

import (
	"time"

	"github.com/berth-dev/berth/services/internal/model"
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
func Evaluate(present model.Verdict, recent []Outcome, rules Rules, now time.Time) model.Verdict {
	if len(recent) == 0 {
		return model.Unknown
	}
	if rules.SilentAfter > 0 && now.Sub(recent[0].At) > rules.SilentAfter {
		return model.Unknown
	}
	inARow := 0
	for _, o := range recent {
		if o.Good != recent[0].Good {
			break
		}
		inARow++
	}
	switch {
	case recent[0].Good && (inARow >= rules.HealthyAfter || present == model.Unknown && inARow == len(recent)):
		return model.Healthy
	case !recent[0].Good && inARow >= rules.UnhealthyAfter:
		return model.Unhealthy
	}
	return present
}

// Worst is the verdict of several: one unhealthy makes all unhealthy, one
// unknown makes healthy ones unknown; without any it is unknown.
func Worst(all []model.Verdict) model.Verdict {
	if len(all) == 0 {
		return model.Unknown
	}
	worst := model.Healthy
	for _, v := range all {
		switch v {
		case model.Unhealthy:
			return model.Unhealthy
		case model.Unknown:
			worst = model.Unknown
		}
	}
	return worst
}
