package consents

import (
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
)

// View is all that changes are decided by, as it is at one time.
type View struct {
	Panel   consent.Panel
	store   Store
	answers []capsule.Envelope
	rules   *consent.Rules
	problem string
	history consent.History
	applied map[string]time.Time
}

// Look reads everything.
func (s Store) Look() (View, error) { return s.look(&chronicle{path: s.Dir.Chain()}) }

func (s Store) look(c *chronicle) (v View, err error) {
	v.store = s
	if v.Panel, err = s.Panel(); err != nil {
		return v, err
	}
	if v.answers, err = list[capsule.Envelope](s, answerPrefix); err != nil {
		return v, err
	}
	v.rules, v.problem = s.rules(v.Panel)
	v.history, v.applied, err = c.history(s.Now())
	return v, err
}

// Stand is how a change stands. also are vendor's accounts that asked for it too.
func (v View) Stand(c Change, also ...string) consent.Stand {
	history := v.history
	if c.PlannedAt.After(history.Now) { // the clock was set back since
		history.Now = c.PlannedAt
	}
	return v.Panel.Settle(consent.Case{
		Subject: v.store.subject(c), Facts: c.Facts, Requesters: slices.Concat(c.Requesters, also), Answers: v.answers,
		Rules: v.rules, RulesProblem: v.problem, History: history,
	})
}

// Applied says whether the effect of a change is there.
func (v View) Applied(c Change) bool {
	at, done := v.applied[c.Effect]
	return done && !c.IsScript() && !at.Before(c.PlannedAt)
}

// Open are the changes that may still be brought about, of those that are given: a later
// plan of the same line, or of the same resource, takes the place of the one before.
func (v View) Open(changes []Change) []Change {
	var open []Change
	seen := map[string]bool{}
	for _, c := range changes { // the newest first
		taken := seen[c.OriginID] || c.Resource != "" && seen[c.Resource]
		seen[c.OriginID], seen[c.Resource] = true, true
		if !taken && !v.Applied(c) && v.history.Now.Sub(c.PlannedAt) < kept {
			open = append(open, c)
		}
	}
	return open
}

// Try says what rules that are not in force would answer to a change now.
func (v View) Try(rules *consent.Rules, c Change) string {
	verdict := consent.Decide(rules, c.Facts, v.history)
	if verdict.Rule != "" {
		return "covered by rule " + verdict.Rule
	}
	return verdict.Why
}
