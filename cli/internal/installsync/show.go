package installsync

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Lines show what is done with each install, for a terminal. What nobody
// declares comes last.
func Lines(items []ctlapi.InstallDecision, color bool) []string {
	var lines, rest []string
	for _, it := range items {
		switch it.Action {
		case ctlapi.InstallDecisionActionCreate:
			lines = append(lines, output.Paint(color, output.Good, "+ "+it.Name))
		case ctlapi.InstallDecisionActionUpdate:
			lines = append(lines, output.Paint(color, output.Notice, "~ "+it.Name))
		case ctlapi.InstallDecisionActionUnchanged:
			lines = append(lines, "= "+it.Name)
		case ctlapi.InstallDecisionActionNotDeclared:
			rest = append(rest, "· "+it.Name+"  (in no file; berth leaves it alone)")
		}
		for _, ch := range it.Changes {
			lines = append(lines, "    "+changeLine(ch))
		}
		if len(it.Kept) > 0 {
			lines = append(lines, "    kept, in no file: "+strings.Join(it.Kept, ", "))
		}
	}
	return append(lines, rest...)
}

func changeLine(ch ctlapi.InstallFieldChange) string {
	switch {
	case ch.Sensitive:
		return ch.Field + ": changed (sensitive)"
	case ch.Old == nil && ch.New == nil:
		return ch.Field
	case ch.Old == nil:
		return ch.Field + ": " + strconv.Quote(*ch.New)
	case ch.New == nil:
		return ch.Field + ": " + strconv.Quote(*ch.Old) + " → nothing"
	}
	return ch.Field + ": " + strconv.Quote(*ch.Old) + " → " + strconv.Quote(*ch.New)
}

// Summary counts the decisions: "1 to create, 2 unchanged"; done tells that it
// was done.
func Summary(items []ctlapi.InstallDecision, done bool) string {
	counts := map[ctlapi.InstallDecisionAction]int{}
	for _, it := range items {
		counts[it.Action]++
	}
	words := []struct {
		action     ctlapi.InstallDecisionAction
		plan, past string
	}{
		{ctlapi.InstallDecisionActionCreate, "to create", "created"},
		{ctlapi.InstallDecisionActionUpdate, "to update", "updated"},
		{ctlapi.InstallDecisionActionUnchanged, "unchanged", "unchanged"},
		{ctlapi.InstallDecisionActionNotDeclared, "in no file", "in no file"},
	}
	var parts []string
	for _, w := range words {
		if n := counts[w.action]; n > 0 {
			word := w.plan
			if done {
				word = w.past
			}
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	if len(parts) == 0 {
		return "no installs"
	}
	return strings.Join(parts, ", ")
}

// Changes tells whether there is anything to do.
func Changes(items []ctlapi.InstallDecision) bool {
	return slices.ContainsFunc(items, func(it ctlapi.InstallDecision) bool {
		return it.Action == ctlapi.InstallDecisionActionCreate || it.Action == ctlapi.InstallDecisionActionUpdate
	})
}

// Next lists the commands that bring into force what is declared.
func Next(items []ctlapi.InstallDecision) []string {
	var lines []string
	for _, it := range items {
		if it.Next == nil {
			continue
		}
		switch *it.Next {
		case ctlapi.InstallDecisionNextProvision:
			lines = append(lines, "berth installs provision "+it.Name)
		case ctlapi.InstallDecisionNextDeploy:
			line := "berth deploy " + it.Name
			if len(it.NextComponents) > 0 {
				line += " " + strings.Join(it.NextComponents, " ")
			}
			lines = append(lines, line)
		}
	}
	return lines
}
