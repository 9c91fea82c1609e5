package check

import (
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// runbooks checks names, and that components and actions exist.
func (v *validator) runbooks() {
	once, components := v.once("runbook"), v.componentNames()
	var actions []string
	for _, a := range v.app.Actions {
		actions = append(actions, a.Name)
	}
	for _, r := range v.app.Runbooks {
		once(r.At, r.Name)
		for i, dep := range r.Dependencies {
			v.exists(r.At.Below("dependencies").Item(i), "component", dep, components, "components")
		}
		for i, s := range r.Steps {
			at := r.At.Below("steps").Item(i)
			v.exists(at.Below("component_name"), "component", s.ComponentName, components, "components")
			v.exists(at.Below("action_name"), "action", s.ActionName, actions, "actions")
		}
	}
}

// eventTriggers checks names, and that targets exist.
func (v *validator) eventTriggers() {
	once := v.once("trigger")
	var branches, runbooks []string
	for _, b := range v.app.Branches {
		branches = append(branches, b.Name)
	}
	for _, r := range v.app.Runbooks {
		runbooks = append(runbooks, r.Name)
	}
	for _, t := range v.app.EventTriggers {
		once(t.At, t.Name)
		if t.Target == nil {
			continue
		}
		if len(branches) > 0 { // without files, branches are made elsewhere
			v.exists(t.At.Below("target.app_branch"), "branch", t.Target.AppBranch, branches, "branches")
		}
		v.exists(t.At.Below("target.runbook"), "runbook", t.Target.Runbook, runbooks, "runbooks")
	}
}

// remediations checks that what is run about a bad verdict is an action, and not
// a check itself.
func (v *validator) remediations() {
	names := v.actionNames()
	for i := range v.app.Actions {
		a := &v.app.Actions[i]
		check, _ := a.HealthCheck()
		at := a.At.Below("berth.health_check.remediation")
		v.exists(at, "action", check.Remediation, names, "actions")
		if other := v.app.Action(check.Remediation); other != nil {
			if _, ok := other.HealthCheck(); ok {
				v.Add(place.Error, place.CodeValue, at, "action %q is a health check, which only reads: a remediation must be an action that repairs", other.Name)
			}
		}
	}
}
