package table

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

// Install shows installs.
func Install(now time.Time) output.View[ctlapi.Install] {
	return output.View[ctlapi.Install]{
		Name: func(i ctlapi.Install) string { return i.Name },
		None: "no installs yet: create one with berth installs create",
		Columns: []output.Column[ctlapi.Install]{
			{Head: "NAME", Shrinks: true, Cell: func(i ctlapi.Install) string { return i.Name }},
			{Head: "APP", Shrinks: true, Cell: func(i ctlapi.Install) string { return i.App.Name }},
			{Head: "CUSTOMER", Shrinks: true, Cell: func(i ctlapi.Install) string { return i.Customer.Name }},
			{Head: "STATE", Shrinks: true, Cell: func(i ctlapi.Install) string {
				if i.Pause != nil {
					return rehearsed(string(i.State)) + ", paused"
				}
				return rehearsed(string(i.State))
			}},
			{Head: "HEALTH", Shrinks: true, Cell: healthOf},
			{Head: "RELEASE", Cell: func(i ctlapi.Install) string { return api.Number(i.Release) }},
			{Head: "AGE", Cell: func(i ctlapi.Install) string { return age(now, i.CreatedAt) }},
			{Head: "ID", Wide: true, Cell: func(i ctlapi.Install) string { return i.ID }},
			{Head: "STACK", Wide: true, Cell: func(i ctlapi.Install) string { return string(i.Stack) }},
			{Head: "APPROVAL", Wide: true, Cell: func(i ctlapi.Install) string { return string(i.ApprovalOption) }},
			{Head: "WORKFLOW", Wide: true, Cell: func(i ctlapi.Install) string { return api.Value(i.WorkflowID) }},
		},
	}
}

// Input shows the inputs of an install; sensitive values stay hidden.
func Input() output.View[ctlapi.InputValue] {
	return output.View[ctlapi.InputValue]{
		Name: func(i ctlapi.InputValue) string { return i.Name },
		None: "the app has no inputs",
		Columns: []output.Column[ctlapi.InputValue]{
			{Head: "NAME", Shrinks: true, Cell: func(i ctlapi.InputValue) string { return i.Name }},
			{Head: "VALUE", Shrinks: true, Cell: func(i ctlapi.InputValue) string {
				if i.Sensitive && i.From != ctlapi.InputValueFromNone {
					return "(sensitive)"
				}
				return api.Value(i.Value)
			}},
			{Head: "FROM", Shrinks: true, Cell: func(i ctlapi.InputValue) string { return string(i.From) }},
			{Head: "TYPE", Shrinks: true, Cell: func(i ctlapi.InputValue) string { return string(i.Type) }},
			{Head: "REQUIRED", Wide: true, Cell: func(i ctlapi.InputValue) string { return fmt.Sprint(i.Required) }},
		},
	}
}

// Resource shows what is live in an install.
func Resource(now time.Time) output.View[ctlapi.Resource] {
	return output.View[ctlapi.Resource]{
		Name: func(r ctlapi.Resource) string { return r.Name },
		Columns: []output.Column[ctlapi.Resource]{
			{Head: "RESOURCE", Shrinks: true, Cell: func(r ctlapi.Resource) string { return r.Name }},
			{Head: "TYPE", Shrinks: true, Cell: resourceType},
			{Head: "STATE", Shrinks: true, Cell: resourceState},
			{Head: "HEALTH", Shrinks: true, Cell: func(r ctlapi.Resource) string { return string(r.Health) }},
			{Head: "RELEASE", Cell: func(r ctlapi.Resource) string { return api.Number(r.LiveRelease) }},
			{Head: "AGE", Cell: func(r ctlapi.Resource) string { return age(now, r.UpdatedAt) }},
			{Head: "DRIFT", Wide: true, Cell: func(r ctlapi.Resource) string { return string(r.Drift) }},
			{Head: "CHANGED BY", Wide: true, Cell: func(r ctlapi.Resource) string { return api.Value(r.LiveChangeID) }},
			{Head: "ARTIFACT", Wide: true, Cell: func(r ctlapi.Resource) string { return output.ShortDigest(api.Value(r.LiveArtifactDigest)) }},
		},
	}
}

// rehearsed puts the mark of what is not live before that word.
func rehearsed(state string) string {
	if state == string(ctlapi.InstallStateRehearsed) {
		return "◇ " + state
	}
	return state
}

// resourceType names the cluster too when that is not the sandbox's.
func resourceType(r ctlapi.Resource) string {
	kind := cmp.Or(r.Type, string(r.Kind))
	if r.KubernetesContext != "" {
		kind += " on " + r.KubernetesContext
	}
	return kind
}

// resourceState tells what is switched off from what is missing.
func resourceState(r ctlapi.Resource) string {
	switch {
	case r.SwitchedOff && r.State == ctlapi.ResourceStateAbsent:
		return "off"
	case r.SwitchedOff:
		return string(r.State) + ", switched off"
	}
	if r.State == ctlapi.ResourceStateRehearsed && r.Rehearsed != nil && r.Rehearsed.How != ctlapi.RehearsedHowStandIn {
		return rehearsed(string(r.State)) + ", " + strings.ReplaceAll(string(r.Rehearsed.How), "_", " ")
	}
	return rehearsed(string(r.State))
}

// Check shows the health checks of an install, each with its last outcomes.
func Check(now time.Time) output.View[ctlapi.Check] {
	return output.View[ctlapi.Check]{
		Name: func(x ctlapi.Check) string { return x.Name },
		None: "the app has no health checks",
		Columns: []output.Column[ctlapi.Check]{
			{Head: "CHECK", Shrinks: true, Cell: func(x ctlapi.Check) string { return x.Name }},
			{Head: "VERDICT", Shrinks: true, Cell: func(x ctlapi.Check) string { return string(x.Verdict) }},
			{Head: "SINCE", Cell: func(x ctlapi.Check) string { return age(now, x.Since) }},
			{Head: "LAST", Cell: func(x ctlapi.Check) string {
				marks := ""
				for _, outcome := range x.Recent {
					switch {
					case api.Value(outcome.Unknown):
						marks += "?"
					case outcome.Ok:
						marks += "✓"
					default:
						marks += "✗"
					}
				}
				return marks
			}},
		},
	}
}

// Stack shows how the runner of an install gets in.
func Stack(now time.Time) output.View[ctlapi.Stack] {
	runner := func(s ctlapi.Stack) ctlapi.Runner { return api.Value(s.Runner) }
	return output.View[ctlapi.Stack]{
		Name: func(s ctlapi.Stack) string { return s.ID },
		Columns: []output.Column[ctlapi.Stack]{
			{Head: "STACK", Shrinks: true, Cell: func(s ctlapi.Stack) string { return string(s.Kind) }},
			{Head: "VERSION", Cell: func(s ctlapi.Stack) string { return fmt.Sprint(s.Version) }},
			{Head: "STATE", Shrinks: true, Cell: func(s ctlapi.Stack) string { return string(s.State) }},
			{Head: "RUNNER", Shrinks: true, Cell: func(s ctlapi.Stack) string { return string(runner(s).State) }},
			{Head: "ONLINE", Cell: func(s ctlapi.Stack) string { return fmt.Sprint(runner(s).Online) }},
			{Head: "AGE", Cell: func(s ctlapi.Stack) string { return age(now, s.CreatedAt) }},
			{Head: "ID", Wide: true, Cell: func(s ctlapi.Stack) string { return s.ID }},
			{Head: "RUNNER ID", Wide: true, Cell: func(s ctlapi.Stack) string { return runner(s).ID }},
		},
	}
}

// healthOf is the verdict on an install, whether it drifted, and the alarms that nobody
// looked at.
func healthOf(i ctlapi.Install) string {
	if i.Drifted > 0 {
		return string(i.Health) + ", drifted" + alarmsOf(i)
	}
	return string(i.Health) + alarmsOf(i)
}

// alarmsOf adds to a word that alarms and alerts are open.
func alarmsOf(i ctlapi.Install) string {
	return counted(i.OpenAlerts, "alert") + counted(i.OpenAlarms, "alarm")
}

func counted(n int, noun string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", 1 " + noun
	}
	return fmt.Sprintf(", %d %ss", n, noun)
}

// Settings says in a line what was set for an install: its labels, the components and
// the customer's roles that are switched, and that nobody is asked about its changes. It is "" for one
// that has nothing of its own.
func Settings(i ctlapi.Install) string {
	var parts []string
	if len(i.Labels) > 0 {
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(i.Labels)) {
			labels = append(labels, visible.Line(name+"="+i.Labels[name]))
		}
		parts = append(parts, "labels: "+strings.Join(labels, ", "))
	}
	if len(i.ComponentToggles) > 0 {
		var switched []string
		for _, name := range slices.Sorted(maps.Keys(i.ComponentToggles)) {
			state := "off"
			if i.ComponentToggles[name] {
				state = "on"
			}
			switched = append(switched, visible.Line(name)+" "+state)
		}
		parts = append(parts, "switched: "+strings.Join(switched, ", "))
	}
	if i.HealthObjective != nil {
		parts = append(parts, fmt.Sprintf("objective: healthy %g %% of the time", *i.HealthObjective))
	}
	if len(i.RolesOn) > 0 {
		var on []string
		for _, name := range i.RolesOn {
			on = append(on, visible.Line(name))
		}
		parts = append(parts, "roles on: "+strings.Join(on, ", "))
	}
	if i.ApprovalOption == ctlapi.ApprovalOptionApproveAll {
		parts = append(parts, "every change is approved by itself")
	}
	return strings.Join(parts, "; ")
}
