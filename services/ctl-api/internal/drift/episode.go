// Package drift decides when a resource has drifted from what was deployed, from the looks
// that its runner reports.
//
//	looks (rows of runner-api) ─▶ Next (pure) ─▶ drift_episodes, resources.drift ─▶ event drift.changed
package drift

import "time"

// Look is one look that did not fail at what is live now.
type Look struct {
	At     time.Time
	Digest string // "" for no drift
	Class  string
	AtOnce bool // an object is gone, left over or made again
	Asked  bool // a person asked for it
}

// Step is what becomes of an episode.
type Step string

// The steps.
const (
	Stay  Step = ""      // as it is
	Open  Step = "open"  // an episode begins
	Keep  Step = "keep"  // the episode goes on, with what was found last
	Close Step = "close" // the episode is over
)

// Next decides on the looks at what is live, newest first; open says whether an episode
// goes on, and since is when one began that opens. One look may fall into a roll-out, so two
// that say the same count: but for an object that is gone or too many, and when a person
// asked. Looking at the same looks again decides the same.
func Next(open bool, looks []Look) (step Step, since time.Time) {
	if len(looks) == 0 {
		return Stay, time.Time{}
	}
	last := looks[0]
	again := len(looks) > 1 && looks[1].Digest == last.Digest
	switch drifted := last.Digest != ""; {
	case open && drifted:
		return Keep, time.Time{}
	case open && (again || last.Asked):
		return Close, time.Time{}
	case !open && drifted && again:
		return Open, looks[1].At
	case !open && drifted && (last.AtOnce || last.Asked):
		return Open, last.At
	}
	return Stay, time.Time{}
}
