package consent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
)

// State is how a change stands with the customer's side.
type State string

// The states.
const (
	NotAsked State = ""
	Needed   State = "needed"
	Given    State = "given"
	Denied   State = "denied"
)

// Case is all that is known of one change.
type Case struct {
	Subject Subject
	Facts   Facts
	// Requesters are the vendor's accounts that asked for the change, as far as known.
	Requesters []string
	// Answers are what was signed, of whatever subject.
	Answers []capsule.Envelope
	// Rules are the standing rules in force, nil for none; RulesProblem says why there
	// are none although there is a file.
	Rules        *Rules
	RulesProblem string
	History      History
}

// Stand is what follows for the change.
type Stand struct {
	State State
	// Why says why somebody is asked, or the reason of who answered.
	Why string
	// By are the holders that agreed or denied, Keys the keys that they did it with.
	By   []string
	Keys []string
	// Rule is the standing rule that agreed, "" when people did.
	Rule string
	// Still is how many more holders have to agree.
	Still int
	// At is when the answer was complete, Until when it ends to count.
	At, Until time.Time
	// Signed are the answers that count.
	Signed []capsule.Envelope
}

// Settle decides how a change stands. A denial counts in each mode: anybody who may agree
// may also stop.
func (p Panel) Settle(c Case) Stand {
	people := p.count(c)
	if people.State == Denied {
		return people
	}
	var why string
	switch {
	case p.Mode == ModeEach:
		why = "each change needs the customer's consent"
	case p.Mode == ModeRules:
		v := Decide(c.Rules, c.Facts, c.History)
		if v.Rule != "" {
			return Stand{State: Given, Rule: v.Rule, By: []string{"rule " + v.Rule}, At: c.History.Now, Until: v.Until}
		}
		why = v.Why
		if c.Rules == nil && c.RulesProblem != "" {
			why = c.RulesProblem
		}
	case !c.Facts.GuardrailAsks:
		return Stand{}
	}
	if people.State == Given {
		return people
	}
	people.Why = strings.Join(slices.DeleteFunc([]string{why, c.Facts.asks()}, func(s string) bool { return s == "" }), "; ")
	return people
}

// asks says what guardrails ask, "" when none does.
func (f Facts) asks() string {
	switch {
	case !f.GuardrailAsks:
		return ""
	case f.Asked == "":
		return "a guardrail asks for the customer's consent"
	}
	return "guardrails ask: " + f.Asked
}

// count counts what the holders signed.
func (p Panel) count(c Case) Stand {
	s := Stand{State: Needed}
	keys := p.Keys()
	type vote struct {
		holder, by, key string
		said            Statement
		answer          int // its place in c.Answers
	}
	var votes []vote
	for n, env := range c.Answers {
		ids, payload, err := Signers(keys, ForStatement, env)
		if err != nil {
			continue
		}
		said, err := ParseStatement(payload)
		if err != nil || said.Subject() != c.Subject {
			continue
		}
		for _, id := range ids {
			seat, _ := p.holder(id)
			name := seat.Name
			if name == Machine && said.By != "" {
				name = said.By + " (" + Machine + ")"
			}
			switch {
			case said.Answer == Deny:
				return Stand{State: Denied, Why: said.Reason, By: []string{name}, Keys: []string{id}, At: said.At, Signed: []capsule.Envelope{env}}
			case !c.History.Now.Before(said.Until), said.At.After(c.History.Now.Add(slack)):
			case slices.ContainsFunc(seat.Accounts, func(a string) bool { return slices.Contains(c.Requesters, a) }):
			case slices.ContainsFunc(votes, func(v vote) bool { return v.holder == seat.Name }):
			default:
				votes = append(votes, vote{seat.Name, name, id, said, n})
			}
		}
	}
	last := -1
	for _, v := range votes {
		s.By, s.Keys = append(s.By, v.by), append(s.Keys, v.key)
		if v.answer != last { // several may have signed one
			s.Signed, last = append(s.Signed, c.Answers[v.answer]), v.answer
		}
		if v.said.At.After(s.At) {
			s.At, s.Why = v.said.At, v.said.Reason
		}
		if s.Until.IsZero() || v.said.Until.Before(s.Until) {
			s.Until = v.said.Until
		}
	}
	if s.Still = max(0, p.Need-len(votes)); s.Still == 0 {
		s.State = Given
	} else {
		s.At, s.Until = time.Time{}, time.Time{}
	}
	return s
}

// Remedy is what to do about a change that needs an answer.
func (s Stand) Remedy(change string) string {
	if s.State == Denied {
		return "start the change again if it is wanted after all: a denial counts for this one for good"
	}
	return fmt.Sprintf("ask the customer to look at it on the runner: berth-runner show %s, then berth-runner approve %s", change, change)
}
