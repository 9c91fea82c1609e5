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

// DriftExtension is the [berth.drift] table of a component or the sandbox: how looks for drift see it.
type DriftExtension struct {
	// Differences between what is live and what was deployed that are fine for a time.
	Accept []DriftAccept `toml:"accept" json:"accept,omitempty"`
}

// DriftAccept is one [[berth.drift.accept]] of a component or the sandbox. In patterns * stands for any
// characters; namespace, name and manager match everything when they are left out.
type DriftAccept struct {
	// The kind of the objects, with or without its group: "Deployment", "Deployment.apps"; the type of a Terraform resource, "aws_s3_bucket"; "*" is all.
	Kind string `toml:"kind" json:"kind" rule:"required"`
	// Their namespace, a pattern.
	Namespace string `toml:"namespace" json:"namespace,omitempty"`
	// Their name, a pattern; of a Terraform resource its address is one too.
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

// until is the end of the day that is written, or the time.
func (a DriftAccept) until() (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, a.Until); err == nil {
		return day.AddDate(0, 0, 1), nil
	}
	at, err := time.Parse(time.RFC3339, a.Until)
	return at.UTC(), err
}

// Rule is the accepted difference as runners read it.
func (a DriftAccept) Rule() (jobspec.DriftRule, error) {
	until, err := a.until()
	rule := jobspec.DriftRule{Kind: a.Kind, Namespace: a.Namespace, Name: a.Name, Path: a.Path, Manager: a.Manager, Reason: a.Reason, By: a.By, Until: until}
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

// looks are what a block says of looks for drift.
type looks struct {
	at       place.Place
	schedule string
	ext      *BlockExtension
	// every is when runners look without a schedule, "" where they do not look.
	every string
}

// everyOf is when runners look at a live component of a kind, or the sandbox, that says
// nothing: "" for never.
func everyOf(kind jobspec.Kind) string {
	switch info := jobspec.Kinds[kind]; {
	case !info.Drifts():
		return ""
	case info.HasState:
		return "every 6 hours"
	}
	return "each hour"
}

func (ch *checker) drift(l looks) {
	at := l.at.Below("drift_schedule")
	ch.cron(at, l.schedule)
	if l.every != "" && l.schedule != "" && !interpolate.IsTemplate(l.schedule) && cronProblem(l.schedule) == "" {
		if problem := DriftScheduleProblem(l.schedule); problem != "" {
			ch.Diags = append(ch.Diags, ch.At(place.Warning, place.CodeValue, at, "%q is too often: %s, so it is looked at %s", l.schedule, problem, l.every).
				WithRemedy(`write "*/5 * * * *"`))
		}
	}
	if l.ext == nil || l.ext.Drift == nil {
		return
	}
	for i, a := range l.ext.Drift.Accept {
		if _, err := a.until(); err != nil && a.Until != "" {
			ch.Diags = append(ch.Diags, ch.At(place.Error, place.CodeValue, l.at.Below("berth.drift.accept").Item(i).Below("until"), "%q is neither a day nor a time", a.Until).
				WithRemedy(`write a day, such as "2027-01-31"`))
		}
	}
}
