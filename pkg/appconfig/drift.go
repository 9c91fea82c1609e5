package appconfig

import (
	"time"

	"github.com/robfig/cron/v3"

	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// MinDriftInterval is the least time between two looks for drift.
const MinDriftInterval = 5 * time.Minute

// DriftExtension is the [berth.drift] table of a component: how looks for drift see it.
type DriftExtension struct {
	// Differences between what is live and what was deployed that are fine for a time.
	Accept []DriftAccept `toml:"accept" json:"accept,omitempty"`
}

// DriftAccept is one [[berth.drift.accept]] of a component. In patterns * stands for any
// characters; namespace, name and manager match everything when they are left out.
type DriftAccept struct {
	// The kind of the objects, with or without its group: "Deployment", "Deployment.apps"; "*" is all.
	Kind string `toml:"kind" json:"kind" rule:"required"`
	// Their namespace, a pattern.
	Namespace string `toml:"namespace" json:"namespace,omitempty"`
	// Their name, a pattern.
	Name string `toml:"name" json:"name,omitempty"`
	// The field, a pattern, which is accepted with all that is below it: "spec.replicas". "." is for objects that are gone, left over or made again.
	Path string `toml:"path" json:"path" rule:"required"`
	// Who makes the difference, a pattern: "kubectl-*".
	Manager string `toml:"manager" json:"manager,omitempty"`
	// Why the difference is fine.
	Reason string `toml:"reason" json:"reason" rule:"required"`
	// Who says so.
	By string `toml:"by" json:"by" rule:"required"`
	// Until when: a day ("2027-01-31", in UTC) or a time ("2027-01-31T12:00:00Z").
	Until string `toml:"until" json:"until" rule:"required"`
}

// Rule is the accepted difference as runners read it.
func (a DriftAccept) Rule() (jobspec.DriftRule, error) {
	until, err := time.Parse(time.RFC3339, a.Until)
	if err != nil {
		if until, err = time.Parse(time.DateOnly, a.Until); err == nil {
			until = until.AddDate(0, 0, 1) // with that day
		}
	}
	rule := jobspec.DriftRule{Kind: a.Kind, Namespace: a.Namespace, Name: a.Name, Path: a.Path, Manager: a.Manager, Reason: a.Reason, By: a.By, Until: until.UTC()}
	if err != nil {
		return rule, err
	}
	return rule, rule.Check()
}

// DriftScheduleProblem tells what is wrong with a schedule of looks for drift, "" when
// nothing is.
func DriftScheduleProblem(expr string) string {
	if problem := cronProblem(expr); problem != "" {
		return problem
	}
	schedule, err := cron.ParseStandard(expr)
	if err != nil {
		return err.Error()
	}
	// A schedule is the same every day, but for the days on which it is none: two days
	// show its shortest time between two looks.
	at := schedule.Next(time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC))
	for end := at.Add(48 * time.Hour); at.Before(end); {
		next := schedule.Next(at)
		if next.IsZero() {
			break
		}
		if next.Sub(at) < MinDriftInterval {
			return "looks for drift are 5 minutes apart at least"
		}
		at = next
	}
	return ""
}

func (ch *checker) drift(at place.Place, schedule string, more *BlockExtension) {
	ch.cron(at.Below("drift_schedule"), schedule)
	if schedule != "" && !interpolate.IsTemplate(schedule) && cronProblem(schedule) == "" {
		if problem := DriftScheduleProblem(schedule); problem != "" {
			ch.Diags = append(ch.Diags, ch.At(place.Error, place.CodeValue, at.Below("drift_schedule"), "%q is too often: %s", schedule, problem).
				WithRemedy(`write "*/5 * * * *", or "0 * * * *" for each hour`))
		}
	}
	if more == nil || more.Drift == nil {
		return
	}
	for i, a := range more.Drift.Accept {
		entry := at.Below("berth.drift.accept").Item(i)
		if a.Kind == "" || a.Path == "" || a.Reason == "" || a.By == "" || a.Until == "" {
			continue // said before
		}
		if _, err := a.Rule(); err != nil {
			ch.Diags = append(ch.Diags, ch.At(place.Error, place.CodeValue, entry.Below("until"), "%q is no time: %v", a.Until, err).
				WithRemedy(`write a day, such as "2027-01-31"`))
		}
	}
}
