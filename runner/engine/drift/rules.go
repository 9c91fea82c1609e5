package drift

import (
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
)

// Rule accepts differences until it expires.
type Rule jobspec.DriftRule

// RulesOf are those of a job. One that is wrong accepts nothing, and the log says so.
func RulesOf(j *job.Job) []Rule {
	all := make([]Rule, 0, len(j.Spec.Drift.Accept))
	for _, r := range j.Spec.Drift.Accept {
		if err := r.Check(); err != nil {
			j.Logf("a rule for %s %s accepts nothing: %v", r.Kind, r.Path, err)
			continue
		}
		all = append(all, Rule(r))
	}
	return all
}

// matches tells whether the rule is about a difference, whatever the time.
func (r Rule) matches(f Finding, d Difference) bool {
	ref := f.Object
	fits := func(pattern, text string) bool { return pattern == "" || match(pattern, text) }
	if !match(r.Kind, ref.Kind) && !match(r.Kind, ref.GVK().GroupKind().String()) {
		return false
	}
	named := fits(r.Name, ref.Name) || f.Named != "" && fits(r.Name, f.Named)
	if !fits(r.Namespace, ref.Namespace) || !named || !fits(r.Manager, d.Manager) {
		return false
	}
	if r.Path == WholeObject || d.Path == WholeObject {
		return r.Path == d.Path
	}
	return match(r.Path, d.Path) || match(r.Path+".*", d.Path) || match(r.Path+"[*", d.Path)
}

// Accept marks the differences that rules accept at a time, and those that rules
// accepted until then. The first rule in force counts; of those that lapsed, the
// last to do so. A difference that does not alert stays as it is.
func (f Finding) Accept(rules []Rule, now time.Time) Finding {
	f.Differences = slices.Clone(f.Differences)
	for i := range f.Differences {
		d := &f.Differences[i]
		d.Accepted, d.Lapsed = nil, nil
		if !d.Alerts() {
			continue
		}
		for _, r := range rules {
			if jobspec.DriftRule(r).Check() != nil || !r.matches(f, *d) {
				continue
			}
			if now.Before(r.Until) {
				d.Accepted, d.Lapsed = &r, nil
				break
			}
			if d.Lapsed == nil || r.Until.After(d.Lapsed.Until) {
				d.Lapsed = &r
			}
		}
	}
	return f
}

// match tells whether text is of a pattern. It takes len(pattern) × len(text)
// steps at most.
func match(pattern, text string) bool {
	p, t := 0, 0
	star, from := -1, 0 // the last * and where what it stands for ends
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, t
			p++
		case p < len(pattern) && pattern[p] == text[t]:
			p, t = p+1, t+1
		case star >= 0:
			from++
			p, t = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
