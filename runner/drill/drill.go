package drill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// Adversary is who attacks.
type Adversary string

// The adversaries, as docs/threat-model.md has them.
const (
	Database Adversary = "somebody who can write the control plane's database"
	Plane    Adversary = "a control plane with the dispatch key"
	Registry Adversary = "a hostile registry"
	Employee Adversary = "an employee of the vendor"
	Vendor   Adversary = "vendor code in an engine"
	Thief    Adversary = "somebody with a copy of the runner's disk"
)

// Verdict is what became of an attack.
type Verdict string

// The verdicts.
const (
	Refused   Verdict = "refused"
	Succeeded Verdict = "succeeded" // the attack had its effect
	Unclear   Verdict = "unclear"   // nobody can say: the drill itself failed, or the runner stayed silent
)

// Attack is one thing that an adversary tries.
type Attack struct {
	Name      string    `json:"name"`
	Adversary Adversary `json:"adversary"`
	// Try is what is attempted, in words.
	Try string `json:"try"`
	// World is where the drill looked for the effect.
	World string `json:"world"`

	run func(context.Context, *scene) (finding, error)
}

// finding is what an attack came to.
type finding struct {
	effect bool   // seen in the world
	rule   string // which rule refused it, as the runner said
}

// group is attacks on one scene, after what is allowed was seen to work there.
type group struct {
	name    string
	shape   func() shape
	allowed Attack
	attacks []Attack
}

// Outcome is an attack with what became of it.
type Outcome struct {
	Attack
	Verdict Verdict `json:"verdict"`
	Rule    string  `json:"rule,omitempty"`
	Error   string  `json:"error,omitempty"`
	Seconds float64 `json:"seconds"`
}

// Report is the outcome of a drill.
type Report struct {
	Began    time.Time `json:"began"`
	Seconds  float64   `json:"seconds"`
	Version  string    `json:"version"`
	Digest   string    `json:"digest"` // of the executable that was attacked
	Isolated bool      `json:"isolated"`
	Outcomes []Outcome `json:"attacks"`
	Allowed  []Outcome `json:"allowed"` // what is allowed, which has to work
}

// Count is how many attacks came to a verdict.
func (r Report) Count(v Verdict) (n int) {
	for _, o := range r.Outcomes {
		if o.Verdict == v {
			n++
		}
	}
	return n
}

// OK says whether each attack was refused, and what is allowed worked.
func (r Report) OK() bool {
	for _, o := range r.Allowed {
		if o.Verdict != Succeeded {
			return false
		}
	}
	return len(r.Outcomes) > 0 && r.Count(Refused) == len(r.Outcomes)
}

// Options are what a drill is told.
type Options struct {
	Runner Runner
	// Base is the directory for scratch installs, which has to be one that users of
	// engines can enter.
	Base string
	// Only names the attacks to try, nil for all.
	Only []string
	// Told is called after each attack, and after what is allowed, one at a time; nil for
	// nobody.
	Told func(out Outcome, allowed bool)
}

// Attacks lists all attacks, in their order.
func Attacks() (all []Attack) {
	for _, g := range groups() {
		all = append(all, g.attacks...)
	}
	return all
}

// Known tells whether there is an attack of that name.
func Known(name string) bool {
	for _, a := range Attacks() {
		if a.Name == name {
			return true
		}
	}
	return false
}

// atOnce is how many scenes are played at the same time. They wait more than they work.
const atOnce = 3

// Run plays the attacks. Its error is about the drill; what the attacks came to is in the
// report.
func Run(ctx context.Context, o Options) (Report, error) {
	report := Report{Began: time.Now().UTC()}
	var mu sync.Mutex
	tell := func(to *[]Outcome, out Outcome, allowed bool) {
		mu.Lock()
		defer mu.Unlock()
		*to = append(*to, out)
		if o.Told != nil {
			o.Told(out, allowed)
		}
	}
	type played struct {
		outcomes, allowed []Outcome
		development       bool
	}
	all := groups()
	results := make([]played, len(all))
	slots := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	for i, g := range all {
		if g.attacks = chosen(g.attacks, o.Only); len(g.attacks) == 0 {
			continue
		}
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			r := &results[i]
			r.development = g.play(ctx, o, func(out Outcome) { tell(&r.outcomes, out, false) }, func(out Outcome) { tell(&r.allowed, out, true) })
		})
	}
	wait.Wait()
	report.Isolated = true
	for _, r := range results {
		report.Isolated = report.Isolated && !r.development
		report.Outcomes, report.Allowed = append(report.Outcomes, r.outcomes...), append(report.Allowed, r.allowed...)
	}
	report.Seconds = time.Since(report.Began).Seconds()
	return report, ctx.Err()
}

func chosen(all []Attack, only []string) (list []Attack) {
	for _, a := range all {
		found := len(only) == 0
		for _, name := range only {
			found = found || name == a.Name
		}
		if found {
			list = append(list, a)
		}
	}
	return list
}

// play sets a scene up, sees what is allowed work, and then attacks. development: the
// runner does not keep vendor code apart.
func (g group) play(ctx context.Context, o Options, attacked, allowed func(Outcome)) (development bool) {
	fail := func(why error) {
		for _, a := range g.attacks {
			attacked(Outcome{Attack: a, Verdict: Unclear, Error: why.Error()})
		}
	}
	base, err := os.MkdirTemp(o.Base, "berth-drill-*")
	if err != nil {
		fail(err)
		return false
	}
	defer func() { _ = os.RemoveAll(base) }()
	if err := os.Chmod(base, 0o755); err != nil { // engines of other users go through it
		fail(err)
		return false
	}
	s, stop, err := newScene(ctx, base, o.Runner, g.shape())
	if err != nil {
		fail(err)
		return false
	}
	defer stop()
	first := g.allowed.play(ctx, s)
	allowed(first)
	if first.Verdict != Succeeded {
		fail(errors.New("what is allowed does not work here either: " + strings.TrimSpace(first.Error+" "+first.Rule)))
		return false
	}
	development = s.development()
	for _, a := range g.attacks {
		attacked(a.play(ctx, s))
	}
	return development
}

func (a Attack) play(ctx context.Context, s *scene) Outcome {
	began := time.Now()
	f, err := a.run(ctx, s)
	out := Outcome{Attack: a, Verdict: Refused, Rule: f.rule, Seconds: time.Since(began).Seconds()}
	switch {
	case f.effect:
		out.Verdict = Succeeded
	case err != nil:
		out.Verdict, out.Error = Unclear, err.Error()
	case f.rule == "":
		out.Verdict, out.Error = Unclear, "nothing happened, and the runner does not say why"
	}
	return out
}

// ruleOf is which rule a refusal names: the fields that differ, else its words.
func ruleOf(r jobspec.Result) string {
	if r.Outcome == jobspec.OutcomeSucceeded {
		return ""
	}
	var names []string
	for _, d := range r.Differs {
		names = append(names, d.Field)
	}
	if len(names) == 0 {
		return r.Error
	}
	return strings.Join(names, ", ")
}

// ran compares how often a script ran before and after something was tried.
func ran(s *scene, name string, try func() (jobspec.Result, error)) (finding, error) {
	before, err := s.lines(name)
	if err != nil {
		return finding{}, err
	}
	result, err := try()
	if err != nil {
		return finding{}, err
	}
	after, err := s.lines(name)
	return finding{effect: after > before, rule: ruleOf(result)}, err
}

// inFile is the words for a look at a mark.
func inFile(name string) string {
	return fmt.Sprintf("a line in the install's file %q", filepath.Base(name))
}
