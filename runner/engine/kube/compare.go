package kube

import (
	"fmt"
	"slices"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
)

// What a difference says of a whole object.
const (
	isThere   = "there"
	isNot     = "not there"
	protected = "protected"
	unplanned = "not in the plan"
)

// Compare says what of a plan no longer holds: every object must be as it was
// planned, or as it is wanted already, and now must do nothing that planned does
// not. The result names fields as "Deployment/web: spec.replicas", and is safe
// to show.
func Compare(planned, now []Change) []jobspec.Difference {
	var differs []jobspec.Difference
	current, known := index(now), index(planned)
	for _, p := range planned {
		c, ok := current[p.Object.key()]
		if !ok {
			c = Change{Object: p.Object} // gone, and nobody wants it
		}
		differs = append(differs, p.against(c)...)
	}
	for _, c := range now {
		if _, ok := known[c.Object.key()]; !ok && c.Action != ActionNone && c.Action != ActionKeep {
			differs = append(differs, jobspec.Difference{Field: c.Object.String(), Want: unplanned, Got: string(c.Action)})
		}
	}
	return differs
}

// against compares one planned change with what a plan would be now.
func (p Change) against(now Change) []jobspec.Difference {
	whole := func(want, got string) []jobspec.Difference {
		return []jobspec.Difference{{Field: p.Object.String(), Want: want, Got: got}}
	}
	exists := now.Live != nil
	swapped := exists && p.UID != "" && p.UID != now.UID
	if now.Action == ActionReplace && p.Action != ActionReplace {
		return whole(orNothing(p.Action), string(ActionReplace)) // nobody agreed that it is deleted
	}
	switch p.Action {
	case ActionCreate:
		if now.Action == ActionUpdate {
			return append(whole(isNot, isThere), now.moved()...)
		}
		return nil
	case ActionReplace:
		if swapped && now.Action != ActionNone {
			return p.swapped(now)
		}
		return nil
	case ActionDelete:
		switch {
		case now.Action == ActionKeep:
			return whole(string(ActionDelete), protected)
		case swapped:
			return p.swapped(now)
		}
		return nil
	case ActionNone:
		if !exists && now.Action == ActionCreate {
			return whole(isThere, isNot)
		}
	case ActionUpdate:
		if !exists {
			return whole(isThere, isNot)
		}
	case ActionKeep:
		return nil
	}
	if swapped {
		return p.swapped(now)
	}
	return p.fieldsAgainst(now)
}

func orNothing(a Action) string {
	if a == ActionNone {
		return "no change"
	}
	return string(a)
}

func (p Change) swapped(now Change) []jobspec.Difference {
	return []jobspec.Difference{{Field: p.Object.String() + ": metadata.uid", Want: p.UID, Got: now.UID}}
}

// moved are the fields that would have to be put back.
func (p Change) moved() []jobspec.Difference {
	var differs []jobspec.Difference
	for _, f := range p.Fields {
		differs = append(differs, p.difference(f.Path, f.After, f.Before))
	}
	return differs
}

func (p Change) fieldsAgainst(now Change) []jobspec.Difference {
	var differs []jobspec.Difference
	live, planned, left := leaves(now.Live), fieldsByPath(p.Fields), fieldsByPath(now.Fields)
	for _, f := range p.Fields {
		switch got := live[f.Path]; {
		case got == f.After:
		case got != f.Before:
			differs = append(differs, p.difference(f.Path, f.Before, got))
		case left[f.Path].After != f.After:
			// It is as it was, but writing would not give what was approved.
			differs = append(differs, p.difference(f.Path, f.After, left[f.Path].After))
		}
	}
	for _, t := range now.Takes {
		if !slices.Contains(p.Takes, t) && !slices.ContainsFunc(differs, func(d jobspec.Difference) bool { return d.Field == p.Object.String()+": "+t.Path }) {
			differs = append(differs, jobspec.Difference{Field: p.Object.String() + ": " + t.Path, Want: "owned by " + FieldManager, Got: "owned by " + t.Owner})
		}
	}
	for _, f := range now.Fields {
		if was, ok := planned[f.Path]; !ok {
			differs = append(differs, p.difference(f.Path, f.After, f.Before))
		} else if live[f.Path] == was.After {
			// It is as was approved, but writing would change it again.
			differs = append(differs, p.difference(f.Path, was.After, f.After))
		}
	}
	return differs
}

func (p Change) difference(path, want, got string) jobspec.Difference {
	d := jobspec.Difference{
		Field: p.Object.String() + ": " + path,
		Want:  orAbsent(shown(p.Object, path, want, nil)), Got: orAbsent(shown(p.Object, path, got, nil)),
	}
	if d.Want == jobspec.Sensitive && d.Got == jobspec.Sensitive {
		d.Got = "(sensitive, another value)"
	}
	return d
}

func orAbsent(value string) string {
	if value == "" {
		return "(absent)"
	}
	return value
}

// Stale is the failure of an apply whose plan no longer holds.
func Stale(subject string, differs []jobspec.Difference) error {
	message := fmt.Sprintf("%s is not as it was when this was planned", subject)
	if len(differs) > 0 {
		message += fmt.Sprintf(": %s is %s, expected %s", differs[0].Field, differs[0].Got, differs[0].Want)
	}
	if more := len(differs) - 1; more > 0 {
		message += fmt.Sprintf(", and %d more", more)
	}
	return &job.Failure{
		Outcome: jobspec.OutcomeStale, Message: message, Differs: differs,
		Remedy: "look at what changed there, then plan again",
	}
}
