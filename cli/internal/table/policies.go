package table

import (
	"fmt"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// AppPolicy shows an app's policies.
func AppPolicy() output.View[ctlapi.AppPolicy] {
	return output.View[ctlapi.AppPolicy]{
		Name: func(p ctlapi.AppPolicy) string { return p.Name },
		None: "no policies: add one below policies/ of the app folder, then sync",
		Columns: []output.Column[ctlapi.AppPolicy]{
			{Head: "POLICY", Cell: func(p ctlapi.AppPolicy) string { return p.Name }},
			{Head: "LOOKS AT", Cell: func(p ctlapi.AppPolicy) string { return p.Type }},
			{Head: "OF", Shrinks: true, Cell: func(p ctlapi.AppPolicy) string {
				if len(p.Components) == 0 {
					return "*"
				}
				return strings.Join(p.Components, ", ")
			}},
			{Head: "ENGINE", Cell: func(p ctlapi.AppPolicy) string { return string(p.Engine) }},
			{Head: "FILE", Wide: true, Cell: func(p ctlapi.AppPolicy) string { return p.File }},
		},
	}
}

// PolicyReport shows what policies say of changes.
func PolicyReport(now time.Time) output.View[ctlapi.PolicyReport] {
	return output.View[ctlapi.PolicyReport]{
		Name: func(r ctlapi.PolicyReport) string { return r.ChangeID },
		None: "no reports: no rules have looked at a plan",
		Columns: []output.Column[ctlapi.PolicyReport]{
			{Head: "CHANGE", Cell: func(r ctlapi.PolicyReport) string { return r.ChangeID }},
			{Head: "INSTALL", Cell: func(r ctlapi.PolicyReport) string { return r.Install.Name }},
			{Head: "SIDE", Cell: func(r ctlapi.PolicyReport) string { return string(r.Side) }},
			{Head: "POLICY", Cell: func(r ctlapi.PolicyReport) string { return r.Policy }},
			{Head: "ANSWER", Cell: func(r ctlapi.PolicyReport) string {
				if r.Override != nil && r.Answer == ctlapi.PolicyAnswerDeny {
					return "deny, overridden by " + r.Override.Actor
				}
				return string(r.Answer)
			}},
			{Head: "VERDICTS", Cell: func(r ctlapi.PolicyReport) string { return countsText(r.Counts) }},
			{Head: "FINDINGS", Shrinks: true, Wide: true, Cell: findingsText},
			{Head: "AGE", Cell: func(r ctlapi.PolicyReport) string { return age(now, r.JudgedAt) }},
		},
	}
}

func countsText(c ctlapi.PolicyCounts) string {
	var parts []string
	for _, of := range []struct {
		n    int
		word string
	}{{c.Fail, "fail"}, {c.Error, "error"}, {c.Unknown, "unknown"}, {c.Warn, "warn"}, {c.Pass, "pass"}, {c.Skip, "skip"}} {
		if of.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", of.n, of.word))
		}
	}
	return strings.Join(parts, ", ")
}

func findingsText(r ctlapi.PolicyReport) string {
	var parts []string
	for _, f := range r.Findings {
		text := f.Document + " " + string(f.Result)
		if f.Message != nil {
			text += ": " + *f.Message
		}
		parts = append(parts, text)
	}
	if r.FindingsLeft > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", r.FindingsLeft))
	}
	return strings.Join(parts, "; ")
}
