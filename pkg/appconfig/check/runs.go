package check

import (
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// runbooks checks names, and that components and actions exist.
func (v *validator) runbooks() {
	once, components, actions := v.once("runbook"), v.components(), v.actionNames()
	for _, r := range v.app.Runbooks {
		once(r.At, r.Name)
		for i, dep := range r.Dependencies {
			v.exists(r.At.Below("dependencies").Item(i), dep, components)
		}
		for i, s := range r.Steps {
			at := r.At.Below("steps").Item(i)
			v.exists(at.Below("component_name"), s.ComponentName, components)
			v.exists(at.Below("action_name"), s.ActionName, actions)
		}
	}
}

// eventTriggers checks names, and that targets exist.
func (v *validator) eventTriggers() {
	once := v.once("trigger")
	branches := namesOf("branch", v.app.Branches, func(b *appconfig.Branch) string { return b.Name }, "branches")
	runbooks := namesOf("runbook", v.app.Runbooks, func(r *appconfig.Runbook) string { return r.Name }, "runbooks")
	for _, t := range v.app.EventTriggers {
		once(t.At, t.Name)
		if t.Target == nil {
			continue
		}
		if len(v.app.Branches) > 0 { // without files, branches are made elsewhere
			v.exists(t.At.Below("target.app_branch"), t.Target.AppBranch, branches)
		}
		v.exists(t.At.Below("target.runbook"), t.Target.Runbook, runbooks)
	}
}

// remediations checks that what is run about a bad verdict is an action that can run by
// itself.
func (v *validator) remediations() {
	for _, r := range v.app.Remedied() {
		v.remedy(r.At.Below("remediation"), r.Remediation)
		v.remedy(r.At.Below("remediation_revert"), r.RemediationRevert)
		if r.RemediationRevert == r.Remediation {
			v.Add(place.Error, place.CodeValue, r.At.Below("remediation_revert"), "action %q cannot take itself back", r.Remediation)
		}
	}
}

func (v *validator) remedy(at place.Place, name string) {
	v.exists(at, name, v.actionNames())
	a := v.app.Action(name)
	if a == nil {
		return
	}
	if _, check := a.HealthCheck(); check {
		v.Add(place.Error, place.CodeValue, at, "action %q is a health check, which only reads: a remediation must be an action that repairs", a.Name)
	}
	if a.BreakGlassRole != "" {
		v.Add(place.Error, place.CodeValue, at, "action %q runs under a break-glass role, which the customer switches on: it cannot run by itself", a.Name)
	}
	for _, in := range a.Inputs {
		if in.Required {
			v.Add(place.Error, place.CodeValue, at, "action %q needs input %q, which nobody gives a run that starts by itself", a.Name, in.Name)
		}
	}
}

// requiredChecks checks that what has to be good after a deploy are health checks, or
// probes of the component.
func (v *validator) requiredChecks() {
	var checks []string
	for i := range v.app.Actions {
		if _, ok := v.app.Actions[i].HealthCheck(); ok {
			checks = append(checks, v.app.Actions[i].Name)
		}
	}
	for i := range v.app.Components {
		c := &v.app.Components[i]
		if c.Health == nil || v.app.Unreadable("actions") {
			continue
		}
		for n, name := range c.Health.RequiredChecks {
			if slices.Contains(checks, name) || slices.ContainsFunc(c.Health.Probes, func(p map[string]string) bool { return p["name"] == name }) {
				continue
			}
			unknown := v.At(place.Warning, place.CodeReference, c.At.Below("health.required_checks").Item(n), "no action that is a health check is called %q, so nothing waits for it", name)
			v.Diags = append(v.Diags, v.Suggest(unknown, name, checks))
		}
	}
}
