package table

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// InstallStatus is an install and how it stands, as programs get it.
type InstallStatus struct {
	ctlapi.Install
	Standing      ctlapi.InstallStatusStanding  `json:"standing"`
	NewestRelease *ctlapi.NumberRef             `json:"newest_release,omitempty"`
	Pending       []ctlapi.InstallStatusPending `json:"pending"`
	Workflow      *ctlapi.WorkflowBrief         `json:"workflow,omitempty"`
	Last          *ctlapi.WorkflowBrief         `json:"last,omitempty"`
	Runner        *ctlapi.RunnerBrief           `json:"runner,omitempty"`
}

// StatusOf makes it of what the API answers.
func StatusOf(s ctlapi.InstallStatus) InstallStatus {
	return InstallStatus{
		Install: s.Install, Standing: s.Standing, NewestRelease: s.NewestRelease, Pending: s.Pending, Workflow: s.Workflow, Last: s.Last, Runner: s.Runner,
	}
}

// Status shows how installs stand and what is at work in them.
func Status(now time.Time) output.View[InstallStatus] {
	return output.View[InstallStatus]{
		Name: func(s InstallStatus) string { return s.Name },
		None: "no installs yet: create one with berth installs create",
		Columns: []output.Column[InstallStatus]{
			{Head: "INSTALL", Shrinks: true, Cell: func(s InstallStatus) string { return s.Name }},
			{Head: "APP", Wide: true, Cell: func(s InstallStatus) string { return s.App.Name }},
			{Head: "CUSTOMER", Wide: true, Cell: func(s InstallStatus) string { return s.Customer.Name }},
			{Head: "STATE", Shrinks: true, Cell: stateOf},
			{Head: "RELEASE", Cell: func(s InstallStatus) string {
				if s.Standing == ctlapi.InstallStatusStandingDeprovisioned {
					return "" // it is on none any more
				}
				return api.Number(s.Release)
			}},
			{Head: "NEWEST", Cell: func(s InstallStatus) string { return api.Number(s.NewestRelease) }},
			{Head: "PENDING", Shrinks: true, Cell: pendingOf},
			{Head: "WORKFLOW", Shrinks: true, Cell: workflowOf},
			{Head: "ENDED", Wide: true, Cell: func(s InstallStatus) string {
				if s.Workflow != nil || s.Last == nil {
					return ""
				}
				return ageOf(now, s.Last.FinishedAt)
			}},
			{Head: "WORKFLOW ID", Wide: true, Cell: func(s InstallStatus) string {
				switch {
				case s.Workflow != nil:
					return s.Workflow.ID
				case s.Last != nil:
					return s.Last.ID
				}
				return ""
			}},
			{Head: "ERROR", Wide: true, Cell: func(s InstallStatus) string {
				if s.Last == nil {
					return ""
				}
				return api.Value(s.Last.Error)
			}},
		},
	}
}

// stateOf is the health of what is live, and else the word for what it is; with
// alarms, and with why its runner does no work.
func stateOf(s InstallStatus) string {
	text := words(string(s.Standing))
	if s.Last != nil && s.Last.Ended != nil { // a provision or removal that somebody denied did not fail
		text = strings.Replace(text, " failed", " "+string(*s.Last.Ended), 1)
	}
	if s.Standing == ctlapi.InstallStatusStandingLive && s.Health != ctlapi.HealthVerdictUnknown {
		text = string(s.Health)
	}
	if s.Standing == ctlapi.InstallStatusStandingRehearsed {
		text = rehearsed(text)
		if s.Health == ctlapi.HealthVerdictUnhealthy {
			text += ", " + string(s.Health)
		}
	}
	text += alarmsOf(s.Install)
	if s.Pause != nil {
		text += ", paused by you"
	}
	if !hasRunner(s) {
		return text
	}
	switch s.Runner.Switch {
	case ctlapi.RunnerSwitchPause:
		text += ", paused"
	case ctlapi.RunnerSwitchReadOnly:
		text += ", read-only"
	case ctlapi.RunnerSwitchStopNow, ctlapi.RunnerSwitchSever:
		text += ", stopped"
	case ctlapi.RunnerSwitchRun:
	}
	if !s.Runner.Online {
		text += ", offline"
	}
	return text
}

// hasRunner tells whether the install has a runner that something depends on.
func hasRunner(s InstallStatus) bool {
	return s.Runner != nil && s.Standing != ctlapi.InstallStatusStandingDeprovisioned && s.Standing != ctlapi.InstallStatusStandingForgotten
}

// pendingOf names what was set and is not deployed; that another release is the
// newest shows next to it, so it is named only when it is all there is.
func pendingOf(s InstallStatus) string {
	var all []string
	for _, p := range s.Pending {
		if p != ctlapi.InstallStatusPendingRelease || len(s.Pending) == 1 {
			all = append(all, string(p))
		}
	}
	return strings.Join(all, ", ")
}

// workflowOf is what is at work in an install, or else how the last one ended.
func workflowOf(s InstallStatus) string {
	switch {
	case s.Workflow != nil && s.Workflow.Wait != nil:
		return words(string(s.Workflow.Kind)) + " waits"
	case s.Workflow != nil:
		return words(string(s.Workflow.Kind)) + " " + string(s.Workflow.State)
	case s.Last != nil:
		return words(string(s.Last.Kind)) + " " + result(*s.Last)
	}
	return ""
}

// result is how a workflow ended.
func result(w ctlapi.WorkflowBrief) string {
	switch {
	case w.Superseded:
		return "superseded"
	case w.State == ctlapi.WorkflowStateSucceeded:
		return "done"
	}
	return cmp.Or(follow.Ended(w.Ended, w.EndedBy), string(w.State))
}

// words is an enum's value as people read it.
func words(value string) string { return strings.ReplaceAll(value, "_", " ") }

// How much of an error stands below the table, in characters; berth why shows all
// of it. What failed mostly stands at its beginning, and the cause at its end.
const (
	errorHead = 90
	errorTail = 150
)

func short(message string) string {
	runes := []rune(message)
	if len(runes) <= errorHead+errorTail {
		return message
	}
	return string(runes[:errorHead]) + "… …" + string(runes[len(runes)-errorTail:])
}

// StatusNotes are the lines below the table: of each install what keeps it from
// working, and why.
func StatusNotes(list []InstallStatus, now time.Time, columns int) []string {
	var lines []string
	note := func(s InstallStatus, text string) {
		lines = append(lines, output.Wrap(s.Name+": "+text, columns, "  ")...)
	}
	for _, s := range list {
		if open := s.Workflow; open != nil && open.Wait != nil {
			note(s, fmt.Sprintf("the %s that %s started waits for %s; berth why %s", words(string(open.Kind)), open.CreatedBy, awaited(open.Wait.Reason), s.Name))
		}
		if failed := s.Last; failed != nil && failed.State == ctlapi.WorkflowStateFailed && !failed.Superseded && s.Workflow == nil {
			text := words(string(failed.Kind)) + " failed"
			if failed.Ended != nil {
				text = words(string(failed.Kind)) + " ended" // why it did stands behind
			}
			if failed.FinishedAt != nil {
				text += " " + age(now, *failed.FinishedAt) + " ago"
			}
			if failed.Step != nil {
				text += " at " + *failed.Step
			}
			if message := short(output.OneLine(api.Value(failed.Error))); message != "" {
				text += ": " + message
			}
			text += "; berth why " + s.Name
			if back := api.Value(failed.Rollback); back != "" {
				text += ", or go back: " + back
			}
			note(s, text)
		}
		if !hasRunner(s) {
			continue
		}
		if s.Runner.Switch != ctlapi.RunnerSwitchRun {
			note(s, switchNote(s, now))
		}
		switch {
		case !s.Runner.Online && s.Runner.LastSeenAt == nil:
			note(s, "its runner is offline")
		case !s.Runner.Online:
			note(s, "its runner is offline, last seen "+age(now, *s.Runner.LastSeenAt)+" ago")
		}
		if problem := api.Value(s.Runner.Problem); problem != "" {
			note(s, "its runner says: "+problem)
		}
	}
	return lines
}

// awaited is what a workflow waits for, as people say it.
func awaited(reason string) string {
	switch reason {
	case "decision":
		return "a decision"
	case "release":
		return "its release to be accepted"
	case "lock":
		return "another change"
	case "stack":
		return "the customer to apply the stack"
	case "runner":
		return "its runner to enrol"
	}
	return reason
}

// switchNote says where the customer's switch stands, since when and why, and
// what waits for it.
func switchNote(s InstallStatus, now time.Time) string {
	text := "the customer's switch is at " + string(s.Runner.Switch)
	if since := s.Runner.SwitchSince; since != nil {
		text += fmt.Sprintf(" since %s (%s)", since.Local().Format("2006-01-02 15:04"), age(now, *since))
	}
	if reason := api.Value(s.Runner.SwitchReason); reason != "" {
		text += ": " + reason
	}
	if s.Workflow != nil && s.Workflow.Wait == nil && s.Runner.Switch != ctlapi.RunnerSwitchReadOnly {
		text += "; the " + words(string(s.Workflow.Kind)) + " waits for it"
	}
	return text
}
