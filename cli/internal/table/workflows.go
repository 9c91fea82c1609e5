package table

import (
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/changes"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Workflow shows workflows.
func Workflow(now time.Time) output.View[ctlapi.Workflow] {
	return output.View[ctlapi.Workflow]{
		Name: func(w ctlapi.Workflow) string { return w.ID },
		None: "no workflows",
		Columns: []output.Column[ctlapi.Workflow]{
			{Head: "ID", Shrinks: true, Least: shortID, Cell: func(w ctlapi.Workflow) string { return w.ID }},
			{Head: "INSTALL", Shrinks: true, Cell: func(w ctlapi.Workflow) string { return w.Install.Name }},
			{Head: "KIND", Shrinks: true, Cell: func(w ctlapi.Workflow) string {
				if w.PlanOnly {
					return "plan of " + string(w.Kind)
				}
				return string(w.Kind)
			}},
			{Head: "STATE", Shrinks: true, Cell: follow.State},
			{Head: "RELEASE", Cell: func(w ctlapi.Workflow) string { return api.Number(w.Release) }},
			{Head: "WAITS FOR", Shrinks: true, Cell: func(w ctlapi.Workflow) string { return api.Value(w.Wait).Reason }},
			{Head: "AGE", Cell: func(w ctlapi.Workflow) string { return age(now, w.CreatedAt) }},
			{Head: "BY", Wide: true, Cell: func(w ctlapi.Workflow) string { return w.CreatedBy }},
			{Head: "ERROR", Wide: true, Cell: func(w ctlapi.Workflow) string { return api.Value(w.Error) }},
		},
	}
}

// Change shows changes.
func Change(now time.Time) output.View[ctlapi.ChangeSummary] {
	return output.View[ctlapi.ChangeSummary]{
		Name: func(x ctlapi.ChangeSummary) string { return x.ID },
		None: "no changes",
		Columns: []output.Column[ctlapi.ChangeSummary]{
			{Head: "ID", Shrinks: true, Least: shortID, Cell: func(x ctlapi.ChangeSummary) string { return x.ID }},
			{Head: "INSTALL", Shrinks: true, Cell: func(x ctlapi.ChangeSummary) string { return x.Install.Name }},
			{Head: "RESOURCE", Shrinks: true, Cell: func(x ctlapi.ChangeSummary) string { return api.Value(x.Resource).Name }},
			{Head: "KIND", Shrinks: true, Cell: func(x ctlapi.ChangeSummary) string { return string(x.Kind) }},
			{Head: "STATE", Cell: func(x ctlapi.ChangeSummary) string { return string(x.State) }},
			{Head: "PLAN", Shrinks: true, Cell: func(x ctlapi.ChangeSummary) string { return changes.Counts(x.Kind, x.Counts) }},
			{Head: "AGE", Cell: func(x ctlapi.ChangeSummary) string { return age(now, x.CreatedAt) }},
			{Head: "EFFECT", Wide: true, Cell: func(x ctlapi.ChangeSummary) string { return output.ShortDigest(api.Value(x.EffectDigest)) }},
			{Head: "ERROR", Wide: true, Cell: func(x ctlapi.ChangeSummary) string { return api.Value(x.Error) }},
		},
	}
}

// Waiting shows changes that wait for a decision.
func Waiting(now time.Time) output.View[ctlapi.ChangeSummary] {
	return output.View[ctlapi.ChangeSummary]{
		Name: func(x ctlapi.ChangeSummary) string { return x.ID },
		None: "nothing waits for a decision",
		Columns: []output.Column[ctlapi.ChangeSummary]{
			{Head: "INSTALL", Shrinks: true, Cell: func(x ctlapi.ChangeSummary) string { return x.Install.Name }},
			{Head: "RESOURCE", Shrinks: true, Cell: func(x ctlapi.ChangeSummary) string { return api.Value(x.Resource).Name }},
			{Head: "KIND", Shrinks: true, Cell: func(x ctlapi.ChangeSummary) string { return string(x.Kind) }},
			{Head: "PLAN", Shrinks: true, Cell: func(x ctlapi.ChangeSummary) string { return changes.Counts(x.Kind, x.Counts) }},
			{Head: "WAITS", Cell: func(x ctlapi.ChangeSummary) string { return ageOf(now, x.ProposedAt) }},
			{Head: "EXPIRES IN", Cell: func(x ctlapi.ChangeSummary) string {
				if x.ExpiresAt == nil {
					return ""
				}
				return follow.Duration(x.ExpiresAt.Sub(now))
			}},
			{Head: "ID", Shrinks: true, Least: shortID, Cell: func(x ctlapi.ChangeSummary) string { return x.ID }},
			{Head: "EFFECT", Wide: true, Cell: func(x ctlapi.ChangeSummary) string { return output.ShortDigest(api.Value(x.EffectDigest)) }},
		},
	}
}

// Action shows the actions of an install.
func Action(now time.Time) output.View[ctlapi.Action] {
	return output.View[ctlapi.Action]{
		Name: func(a ctlapi.Action) string { return a.Name },
		None: "the app has no actions",
		Columns: []output.Column[ctlapi.Action]{
			{Head: "NAME", Shrinks: true, Cell: func(a ctlapi.Action) string { return a.Name }},
			{Head: "KIND", Shrinks: true, Cell: func(a ctlapi.Action) string {
				if a.HealthCheck {
					return "health check"
				}
				if a.Unattended {
					return "script, by itself"
				}
				return "script"
			}},
			{Head: "TRIGGERS", Shrinks: true, Cell: func(a ctlapi.Action) string {
				var triggers []string
				for _, t := range a.Triggers {
					triggers = append(triggers, strings.TrimSpace(t.Type+" "+api.Value(t.CronSchedule)+api.Value(t.Component)))
				}
				return strings.Join(triggers, ", ")
			}},
			{Head: "NEXT", Cell: func(a ctlapi.Action) string { return nextTick(now, a.Triggers) }},
			{Head: "LAST RUN", Shrinks: true, Cell: func(a ctlapi.Action) string { return string(api.Value(a.LastRun).State) }},
			{Head: "AGE", Cell: func(a ctlapi.Action) string {
				if a.LastRun == nil {
					return ""
				}
				return age(now, a.LastRun.CreatedAt)
			}},
			{Head: "DESCRIPTION", Wide: true, Cell: func(a ctlapi.Action) string { return a.Description }},
		},
	}
}

// nextTick is the time until the first tick of any schedule, "" without one.
func nextTick(now time.Time, triggers []ctlapi.ActionTrigger) string {
	var next *time.Time
	for _, t := range triggers {
		if t.NextAt != nil && (next == nil || t.NextAt.Before(*next)) {
			next = t.NextAt
		}
	}
	if next == nil {
		return ""
	}
	return "in " + follow.Duration(max(0, next.Sub(now)))
}

// ActionRun shows runs of actions.
func ActionRun(now time.Time) output.View[ctlapi.ActionRun] {
	return output.View[ctlapi.ActionRun]{
		Name: func(r ctlapi.ActionRun) string { return r.ID },
		None: "no runs",
		Columns: []output.Column[ctlapi.ActionRun]{
			{Head: "ID", Shrinks: true, Least: shortID, Cell: func(r ctlapi.ActionRun) string { return r.ID }},
			{Head: "INSTALL", Shrinks: true, Cell: func(r ctlapi.ActionRun) string { return r.Install.Name }},
			{Head: "ACTION", Shrinks: true, Cell: func(r ctlapi.ActionRun) string { return r.Action }},
			{Head: "TRIGGER", Shrinks: true, Cell: func(r ctlapi.ActionRun) string { return r.Trigger }},
			{Head: "STATE", Cell: func(r ctlapi.ActionRun) string { return string(r.State) }},
			{Head: "AGE", Cell: func(r ctlapi.ActionRun) string { return age(now, r.CreatedAt) }},
			{Head: "NUMBERS", Yields: true, Cell: numbersOf},
			{Head: "STREAM", Wide: true, Cell: func(r ctlapi.ActionRun) string { return api.Value(r.StreamID) }},
			{Head: "ERROR", Wide: true, Cell: func(r ctlapi.ActionRun) string { return api.Value(r.Error) }},
			{Head: "NUMBERS LEFT OUT", Wide: true, Cell: func(r ctlapi.ActionRun) string { return api.Value(r.MetricsError) }},
		},
	}
}

// numbersOf says how many numbers a run wrote, and whether some were left out.
func numbersOf(r ctlapi.ActionRun) string {
	kept := api.Value(r.MetricsKept)
	switch {
	case r.MetricsError == nil && kept == 0:
		return ""
	case r.MetricsError == nil:
		return strconv.Itoa(kept)
	case kept == 0:
		return "left out"
	}
	return strconv.Itoa(kept) + ", some left out"
}

// Alarm shows alarms; all tells that acknowledged ones are among them.
func Alarm(now time.Time, all bool) output.View[ctlapi.Alarm] {
	return output.View[ctlapi.Alarm]{
		Name: func(a ctlapi.Alarm) string { return a.ID },
		None: "no open alarms",
		Columns: []output.Column[ctlapi.Alarm]{
			{Head: "ID", Cell: func(a ctlapi.Alarm) string { return a.ID }},
			{Head: "ALARM", Shrinks: true, Cell: func(a ctlapi.Alarm) string { return a.Kind }},
			{Head: "INSTALL", Shrinks: true, Cell: func(a ctlapi.Alarm) string { return api.Value(a.Install).Name }},
			{Head: "AGE", Yields: true, Cell: func(a ctlapi.Alarm) string { return age(now, a.CreatedAt) }},
			{Head: "CAUSE", Shrinks: true, Cell: func(a ctlapi.Alarm) string { return a.Cause }},
			{Head: "ACKNOWLEDGED", Shrinks: true, Wide: !all, Cell: func(a ctlapi.Alarm) string {
				if a.AcknowledgedAt == nil {
					return ""
				}
				return api.Value(a.AcknowledgedBy) + ": " + api.Value(a.Reason)
			}},
			{Head: "ABOUT", Wide: true, Cell: func(a ctlapi.Alarm) string { return a.About }},
			{Head: "REMEDY", Wide: true, Cell: func(a ctlapi.Alarm) string { return a.Remedy }},
			{Head: "RUNNER", Wide: true, Cell: func(a ctlapi.Alarm) string { return a.RunnerID }},
		},
	}
}
