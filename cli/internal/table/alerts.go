package table

import (
	"fmt"
	"strconv"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Alert shows alerts; states tells that not all of them are open.
func Alert(now time.Time, states bool) output.View[ctlapi.Alert] {
	return output.View[ctlapi.Alert]{
		Name: func(a ctlapi.Alert) string { return a.ID },
		None: "no open alerts",
		Columns: []output.Column[ctlapi.Alert]{
			{Head: "ID", Cell: func(a ctlapi.Alert) string { return a.ID }},
			{Head: "INSTALL", Shrinks: true, Cell: func(a ctlapi.Alert) string { return a.Install.Name }},
			{Head: "ALERT", Shrinks: true, Cell: func(a ctlapi.Alert) string { return words(string(a.Kind)) }},
			{Head: "STATE", Wide: !states, Shrinks: true, Cell: alertState},
			{Head: "AGE", Yields: true, Cell: func(a ctlapi.Alert) string { return age(now, a.Since) }},
			{Head: "WHAT", Shrinks: true, Cell: func(a ctlapi.Alert) string { return a.Text }},
			{Head: "ACKNOWLEDGED", Shrinks: true, Yields: true, Cell: func(a ctlapi.Alert) string {
				if a.AcknowledgedBy == nil {
					return ""
				}
				return *a.AcknowledgedBy + ": " + api.Value(a.Note)
			}},
			{Head: "SEVERITY", Wide: true, Cell: func(a ctlapi.Alert) string { return string(a.Severity) }},
			{Head: "RELEASE", Wide: true, Cell: func(a ctlapi.Alert) string { return causeOf(a.Release, a.RunnerVersion) }},
			{Head: "INCIDENT", Wide: true, Cell: func(a ctlapi.Alert) string { return api.Value(a.IncidentID) }},
			{Head: "RELAPSES", Wide: true, Cell: func(a ctlapi.Alert) string { return strconv.Itoa(a.Relapses) }},
		},
	}
}

// alertState is the state of an alert with what it comes from or goes to.
func alertState(a ctlapi.Alert) string {
	switch {
	case a.Held != nil:
		return fmt.Sprintf("held, %s until %s", words(string(a.Held.Because)), a.Held.Until.UTC().Format(time.RFC3339))
	case a.ClosedBecause != nil:
		return fmt.Sprintf("closed, %s", *a.ClosedBecause)
	case a.GoodSince != nil:
		return "open, well since " + a.GoodSince.UTC().Format(time.RFC3339)
	}
	return string(a.State)
}

// causeOf is what the installs of an incident have in common.
func causeOf(release *ctlapi.NumberRef, runner *string) string {
	if release != nil {
		return strconv.Itoa(release.Number)
	}
	if runner != nil {
		return "runner " + *runner
	}
	return ""
}

// AlertMute shows mutes; all tells that those that are over are among them.
func AlertMute(all bool) output.View[ctlapi.AlertMute] {
	return output.View[ctlapi.AlertMute]{
		Name: func(m ctlapi.AlertMute) string { return m.ID },
		None: "nothing is muted",
		Columns: []output.Column[ctlapi.AlertMute]{
			{Head: "ID", Cell: func(m ctlapi.AlertMute) string { return m.ID }},
			{Head: "INSTALL", Shrinks: true, Cell: func(m ctlapi.AlertMute) string {
				if m.Install == nil {
					return "all"
				}
				return m.Install.Name
			}},
			{Head: "ALERTS", Shrinks: true, Cell: func(m ctlapi.AlertMute) string {
				if m.Kind == nil {
					return "all"
				}
				if m.Subject != nil {
					return words(string(*m.Kind)) + ": " + *m.Subject
				}
				return words(string(*m.Kind))
			}},
			{Head: "UNTIL", Yields: true, Cell: func(m ctlapi.AlertMute) string { return m.Until.UTC().Format(time.RFC3339) }},
			{Head: "BY", Shrinks: true, Cell: func(m ctlapi.AlertMute) string { return m.CreatedBy }},
			{Head: "REASON", Shrinks: true, Cell: func(m ctlapi.AlertMute) string { return m.Reason }},
			{Head: "ENDED BY", Shrinks: true, Yields: true, Wide: !all, Cell: func(m ctlapi.AlertMute) string { return api.Value(m.RemovedBy) }},
		},
	}
}

// Incident shows incidents; all tells that closed ones are among them.
func Incident(now time.Time, all bool) output.View[ctlapi.Incident] {
	return output.View[ctlapi.Incident]{
		Name: func(i ctlapi.Incident) string { return i.ID },
		None: "no open incidents",
		Columns: []output.Column[ctlapi.Incident]{
			{Head: "ID", Cell: func(i ctlapi.Incident) string { return i.ID }},
			{Head: "ALERT", Shrinks: true, Cell: func(i ctlapi.Incident) string { return words(string(i.Kind)) }},
			{Head: "ABOUT", Shrinks: true, Cell: func(i ctlapi.Incident) string { return i.About }},
			{Head: "APP", Shrinks: true, Cell: func(i ctlapi.Incident) string { return api.Value(i.App) }},
			{Head: "RELEASE", Shrinks: true, Cell: func(i ctlapi.Incident) string { return causeOf(i.Release, i.RunnerVersion) }},
			{Head: "OPEN ALERTS", Yields: true, Cell: func(i ctlapi.Incident) string { return fmt.Sprintf("%d of %d", i.OpenAlerts, i.Alerts) }},
			{Head: "AGE", Yields: true, Cell: func(i ctlapi.Incident) string { return age(now, i.OpenedAt) }},
			{Head: "CLOSED", Wide: !all, Yields: true, Cell: func(i ctlapi.Incident) string {
				if i.ClosedAt == nil {
					return ""
				}
				return i.ClosedAt.UTC().Format(time.RFC3339)
			}},
		},
	}
}

// IncidentDetail is an incident with its alerts, for programs.
func IncidentDetail() output.View[ctlapi.IncidentDetail] {
	return output.View[ctlapi.IncidentDetail]{Name: func(d ctlapi.IncidentDetail) string { return d.Incident.ID }}
}
