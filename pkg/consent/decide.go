package consent

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Facts are what a change does, by the runner's own record of its plan.
type Facts struct {
	// ChangeKind is the effect's: one of ChangeKinds. Component is a component's name, or
	// an action's.
	ChangeKind string `json:"change_kind"`
	Component  string `json:"component,omitempty"`

	Create  int `json:"create"`
	Update  int `json:"update"`
	Replace int `json:"replace"`
	Delete  int `json:"delete"`
	// Other counts what is none of these: scripts and hooks that run, moves, upgrades.
	Other int `json:"other"`
	// ImagesOnly: all that changes are images of containers.
	ImagesOnly bool `json:"images_only"`
	// Steps are the versions that change: of a chart, or of what a plan changes nothing of
	// but versions.
	Steps []Step `json:"steps,omitempty"`
	// GuardrailAsks: a guardrail of the customer's asks for consent.
	GuardrailAsks bool `json:"guardrail_asks,omitempty"`
	// Asked is what it says, for people.
	Asked string `json:"asked,omitempty"`
}

// Step is a version that changes.
type Step struct {
	Of   string `json:"of"`
	From string `json:"from"`
	To   string `json:"to"`
}

// History is what the chain tells.
type History struct {
	// Now is the present, and never before the last record.
	Now time.Time
	// Used are the changes of the last week that a rule agreed to.
	Used []Use
	// SpentAt is when the chain was last continued from elsewhere: by another machine, or
	// with records missing. What was used before that is not known, so all of it was.
	SpentAt time.Time
}

// Use is one change that a rule agreed to.
type Use struct {
	Rule string
	At   time.Time
}

// Verdict is what the standing rules say.
type Verdict struct {
	// Rule agrees; "" when none does.
	Rule string
	// Why says why none does, for people.
	Why string
	// Until is when the rule ends to agree: its window, or a freeze, is then over.
	Until time.Time
}

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// Decide finds the first rule that agrees to a change.
func Decide(r *Rules, f Facts, h History) Verdict {
	switch {
	case r == nil || len(r.Rules) == 0:
		return Verdict{Why: "there are no standing rules"}
	case !h.Now.Before(r.Expires):
		return Verdict{Why: "the standing rules expired at " + r.at(r.Expires)}
	}
	for _, freeze := range r.Freezes {
		if !h.Now.Before(freeze.from) && h.Now.Before(freeze.until) {
			why := "frozen until " + r.at(freeze.until)
			if freeze.Reason != "" {
				why += ": " + freeze.Reason
			}
			return Verdict{Why: why}
		}
	}
	var whys []string
	for _, rule := range r.Rules {
		why, until := r.against(rule, f, h)
		if why == "" {
			return Verdict{Rule: rule.Name, Until: until}
		}
		whys = append(whys, fmt.Sprintf("rule %s: %s", rule.Name, why))
	}
	return Verdict{Why: "no standing rule covers it: " + strings.Join(whys, "; ")}
}

// against says what of a rule a change does not pass, "" for nothing, and until when the
// rule holds.
func (r *Rules) against(rule Rule, f Facts, h History) (why string, until time.Time) {
	if why = rule.scope(f); why == "" {
		why = rule.content(f)
	}
	if why != "" {
		return why, until
	}
	until = r.Expires
	if !rule.Expires.IsZero() {
		if !h.Now.Before(rule.Expires) {
			return "it expired at " + r.at(rule.Expires), until
		}
		until = earlier(until, rule.Expires)
	}
	for _, freeze := range r.Freezes {
		if freeze.from.After(h.Now) {
			until = earlier(until, freeze.from)
		}
	}
	if len(rule.Windows) > 0 {
		ends, open := r.window(rule, h.Now)
		if !open {
			return "it is outside of its windows", until
		}
		until = earlier(until, ends)
	}
	return rule.used(h), until
}

// scope says whether the rule is for such a change at all.
func (rule Rule) scope(f Facts) string {
	named := func(pattern string) bool { matched, _ := path.Match(pattern, f.Component); return matched }
	switch {
	case !slices.Contains(rule.Changes, f.ChangeKind):
		return fmt.Sprintf("it is not for a change of kind %s", f.ChangeKind)
	case len(rule.Components) > 0 && !slices.ContainsFunc(rule.Components, named):
		return "it is not for " + f.Component
	case f.GuardrailAsks && !rule.GuardrailAsks:
		return "a guardrail asks, which this rule does not answer"
	}
	return ""
}

// content says what the rule does not agree to in what the change does.
func (rule Rule) content(f Facts) string {
	switch {
	case rule.NoDeletes && f.Delete+f.Replace > 0:
		return fmt.Sprintf("it deletes %d and replaces %d", f.Delete, f.Replace)
	case rule.NoReplaces && f.Replace > 0:
		return fmt.Sprintf("it replaces %d", f.Replace)
	case rule.CreatesOnly && (f.Update+f.Replace+f.Delete+f.Other > 0):
		return "it does more than create"
	case rule.ImagesOnly && !f.ImagesOnly:
		return "more than images changes"
	case rule.PatchReleases && len(f.Steps) == 0:
		return "its versions are not known, or more than versions changes"
	case rule.PatchReleases:
		for _, s := range f.Steps {
			if !s.patch() {
				return fmt.Sprintf("%s goes from %s to %s, which is no patch release", s.Of, s.From, s.To)
			}
		}
	}
	return ""
}

// used says whether the rule has agreed often enough.
func (rule Rule) used(h History) string {
	for _, limit := range []struct {
		most int
		in   time.Duration
		text string
	}{{rule.MaxPerDay, day, "24 hours"}, {rule.MaxPerWeek, week, "7 days"}} {
		if limit.most == 0 {
			continue
		}
		since := h.Now.Add(-limit.in)
		if h.SpentAt.After(since) {
			return "what was done in the last " + limit.text + " is not known: the chain was continued from elsewhere"
		}
		n := 0
		for _, u := range h.Used {
			if u.Rule == rule.Name && u.At.After(since) {
				n++
			}
		}
		if n >= limit.most {
			return fmt.Sprintf("%d changes in %s, at most %d", n, limit.text, limit.most)
		}
	}
	return ""
}

// window says whether one of a rule's windows is open, and when it closes. Windows go by
// the clock on the wall: one of 01:00 to 04:00 is an hour shorter or longer in the nights
// when that is changed.
func (r *Rules) window(rule Rule, now time.Time) (ends time.Time, open bool) {
	local := now.In(r.zone)
	minute := local.Hour()*60 + local.Minute()
	for _, w := range rule.Windows {
		if len(w.Days) > 0 && !slices.Contains(w.Days, days[local.Weekday()]) || minute < w.from || minute >= w.until {
			continue
		}
		closes := time.Date(local.Year(), local.Month(), local.Day(), w.until/60, w.until%60, 0, 0, r.zone)
		if !open || closes.After(ends) {
			ends, open = closes, true
		}
	}
	return ends, open
}

func (r *Rules) at(t time.Time) string { return t.In(r.zone).Format("2006-01-02 15:04 MST") }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
