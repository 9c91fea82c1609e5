package webhooks

import "time"

// Pauses before the second and each later attempt of a delivery: 13 attempts in
// about three days. docs/guides/webhooks.md has the same table.
var pauses = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour,
	2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 12 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// MaxAttempts is how often a delivery is tried.
const MaxAttempts = 13

// disableAfter is for how long nothing may have arrived before a webhook is
// disabled: as long as a delivery is tried.
const disableAfter = 72 * time.Hour

// NextAttempt says how long to wait after so many failed attempts; false when
// there is no further one. spread is in [0, 1): up to a fifth is added, so that the
// deliveries of an outage do not all come back at once.
func NextAttempt(failed int, spread float64) (time.Duration, bool) {
	if failed < 1 || failed > len(pauses) {
		return 0, false
	}
	pause := pauses[failed-1]
	return pause + time.Duration(spread*float64(pause)/5), true
}

// GivenUp says whether a webhook is to be disabled: a delivery has used up its
// attempts, and nothing at all has arrived since failingSince, long ago.
func GivenUp(lastAttempt bool, failingSince, now time.Time) bool {
	return lastAttempt && !failingSince.IsZero() && now.Sub(failingSince) >= disableAfter
}
