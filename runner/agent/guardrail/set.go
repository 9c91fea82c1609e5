package guardrail

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/policy"
)

// Rule is one guardrail: a file.
type Rule struct {
	policy.Rules
	// Standard is set for one that ships with the runner.
	Standard *Standard
	// Since is when the customer's file was written last.
	Since time.Time
}

// Set is all guardrails as they stand at one moment.
type Set struct {
	Rules    []Rule
	Answers  []Answer // those in force, of all answers files
	OnlyWarn bool     // the customer wants them to warn only
	// Development: nothing keeps engines apart from the runner here, so the vendor's code
	// could change the guardrails. They only warn.
	Development bool
	// Problems are what could not be read: while there are any, everything is in doubt.
	Problems []Problem
}

// Problem is something wrong with a file.
type Problem struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"` // 0 when the whole file is meant
	Text string `json:"message"`
}

// String is file:line: text.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// Empty says that there is nothing to hold a change against.
func (s Set) Empty() bool { return len(s.Rules) == 0 && len(s.Problems) == 0 }

// Digest names the set and what its answers mean; "" for an empty one.
func (s Set) Digest() string {
	if s.Empty() {
		return ""
	}
	type rule struct {
		Name     string `json:"name"`
		Language string `json:"language"`
		V0       bool   `json:"v0"`
		Text     string `json:"text"` // its digest
		Answer   string `json:"answer"`
	}
	whole := struct {
		Rules       []rule   `json:"rules"`
		Answers     []string `json:"answers"`
		OnlyWarn    bool     `json:"only_warn"`
		Development bool     `json:"development"`
		Problems    []string `json:"problems"`
	}{OnlyWarn: s.OnlyWarn, Development: s.Development}
	for _, r := range s.Rules {
		var standard string
		if r.Standard != nil {
			standard = string(r.Standard.Answer)
		}
		whole.Rules = append(whole.Rules, rule{r.Name, string(r.Language), r.RegoV0, capsule.DigestBytes([]byte(r.Text)), standard})
	}
	for _, a := range s.Answers {
		whole.Answers = append(whole.Answers, a.key())
	}
	for _, p := range s.Problems {
		whole.Problems = append(whole.Problems, p.String())
	}
	digest, err := capsule.DigestOf(whole)
	if err != nil { // names that are not UTF-8
		return capsule.DigestBytes([]byte(err.Error()))
	}
	return digest
}

// Answer is what a failure of the rule means for a component; "" where the rule's own word
// counts. Of several answers the strictest counts.
func (s Set) Answer(r Rule, component string) policy.Answer {
	var found policy.Answer
	for _, a := range s.Answers {
		if a.Guardrail == r.Name && (len(a.Components) == 0 || slices.Contains(a.Components, component)) {
			found = policy.Worse(cmp.Or(found, policy.Allow), a.Answer)
		}
	}
	if found == "" && r.Standard != nil {
		return r.Standard.Answer
	}
	return found
}

// asks says whether the rule has to be asked at all.
func (s Set) asks(r Rule) bool {
	if r.Standard == nil {
		return true
	}
	scoped := slices.ContainsFunc(s.Answers, func(a Answer) bool { return a.Guardrail == r.Name && len(a.Components) > 0 })
	return scoped || s.Answer(r, "") != policy.Allow
}

// timed are words of rules whose answer may depend on the hour. A rule that has one of them
// without meaning it is asked once more than needed.
var timed = []string{"time.", "now(", "timestamp("}

// Timed says that the same documents may be judged differently at another hour.
func (s Set) Timed() bool {
	return slices.ContainsFunc(s.Rules, func(r Rule) bool {
		return r.Standard == nil && LooksAtClock(r.Rules)
	})
}

// LooksAtClock says that rules may judge the same documents differently at another hour.
func LooksAtClock(r policy.Rules) bool {
	return slices.ContainsFunc(timed, func(word string) bool { return strings.Contains(r.Text, word) })
}
