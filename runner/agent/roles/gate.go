package roles

import (
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/customerrole"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/scripts"
)

// Asked is an order about an action, and what this machine knows.
type Asked struct {
	Spec jobspec.Spec
	// Scripts are the accepted ones; Find finds the one that an action is.
	Scripts []scripts.Accepted
	Find    func(action jobspec.Action, timeoutSeconds int) (scripts.Accepted, bool)
	Roles   Document
	Now     time.Time
}

// Refusal is why an order is not carried out.
type Refusal struct {
	// Outcome is stale where the order is good and its role is off: it is planned again
	// then, and waits. Everything else is refused.
	Outcome jobspec.Outcome
	scripts.Objection
}

func refused(o scripts.Objection) *Refusal {
	return &Refusal{Outcome: jobspec.OutcomeRefused, Objection: o}
}

// Judge says why an action may not be planned or run, nil when it may. That an action
// needs a role follows from the script that was accepted under its name: an order that
// leaves the role out, or names another one, is not that script.
func Judge(a Asked) *Refusal {
	action := a.Spec.Action
	if a.Spec.Kind != jobspec.KindAction || action == nil || action.AdHoc && action.BreakGlassRole == "" {
		return nil
	}
	accepted := demanded(a.Scripts, action.Name)
	if len(accepted) == 0 && action.BreakGlassRole == "" {
		return nil
	}
	script, found := a.Find(*action, a.Spec.TimeoutSeconds)
	if !found || action.AdHoc {
		return notAccepted(*action, accepted)
	}
	if o := script.Objects(action.Inputs); o != nil {
		return refused(*o)
	}
	written := script.Script.Action.BreakGlassRole
	if written == "" || a.Spec.Operation == jobspec.OperationPlan { // a plan runs nothing
		return nil
	}
	role, undeclared := a.declared(written, "action.break_glass_role")
	if undeclared != nil {
		return undeclared
	}
	if action.SwitchedOff != "" && script.Script.WhenRoleIsOff && a.Roles.wentOff(role.Written, action.SwitchedOff) {
		return nil
	}
	if a.on(role, written) {
		return nil
	}
	return off(a.Roles, role, a.Now)
}

// JudgePlugin says why a plugin may neither plan nor apply, nil when it may. All roles
// that it was accepted with have to be on: its plan runs it already. That an order names
// all of them is up to package plugins, which finds out whether it was accepted so.
func JudgePlugin(a Asked) *Refusal {
	if a.Spec.Kind != jobspec.KindPlugin || a.Spec.Operation == jobspec.OperationBuild || a.Spec.Plugin == nil {
		return nil
	}
	for _, written := range a.Spec.Plugin.Roles {
		role, undeclared := a.declared(written, "plugin.roles")
		if undeclared != nil {
			return undeclared
		}
		if !a.on(role, written) {
			return refused(off(a.Roles, role, a.Now).Objection)
		}
	}
	return nil
}

// declared finds the role of the accepted release that something names.
func (a Asked) declared(written, field string) (customerrole.Role, *Refusal) {
	role, declared := customerrole.Find(a.Roles.Declared, written)
	if declared {
		return role, nil
	}
	return role, refused(scripts.Objection{
		Text: fmt.Sprintf("the accepted release declares no role %q", written), Remedy: "declare it in break_glass.toml, sync the app and deploy it",
		Differs: jobspec.Difference{Field: field, Want: "a role of the accepted release", Got: written},
	})
}

// on says whether a role is. A literal name finds a role by what that is called here,
// which the control plane renders: it counts as the customer saw it when the role was
// switched.
func (a Asked) on(role customerrole.Role, written string) bool {
	asSeen := role.Written == customerrole.Canonical(written) || a.Roles.Last(role.Written).Name == customerrole.Canonical(written)
	return asSeen && a.Roles.On(role.Written, a.Now)
}

// off refuses a run whose role is off.
func off(d Document, role customerrole.Role, now time.Time) *Refusal {
	text := fmt.Sprintf("role %s is off: only the customer switches it on", role.Name)
	switch last := d.last(role.Written); {
	case last.On && !last.Recorded:
		text = fmt.Sprintf("role %s is not on yet: the chain does not have it", role.Name)
	case last.On && !inTime(last.Switch, now):
		text = fmt.Sprintf("role %s is off since %s, when its time was over", role.Name, last.Until.Format(time.RFC3339))
	}
	return &Refusal{Outcome: jobspec.OutcomeStale, Objection: scripts.Objection{
		Text: text, Remedy: "ask the customer to run: berth-runner roles enable " + role.Name, Differs: jobspec.Difference{Field: "role", Want: "on", Got: "off"},
	}}
}

// demanded are the accepted scripts of a name, when one of them needs a role.
func demanded(list []scripts.Accepted, name string) []scripts.Accepted {
	list = slices.DeleteFunc(slices.Clone(list), func(s scripts.Accepted) bool { return s.Script.Plugin != "" || s.Script.Action.Name != name })
	if !slices.ContainsFunc(list, func(s scripts.Accepted) bool { return s.Script.Action.BreakGlassRole != "" }) {
		return nil
	}
	return list
}

// notAccepted says in what an order differs from what was accepted under its name.
func notAccepted(action jobspec.Action, accepted []scripts.Accepted) *Refusal {
	o := scripts.Objection{
		Text: scripts.NotAccepted, Remedy: scripts.AcceptRemedy,
		Differs: jobspec.Difference{Field: "script", Want: "one that was accepted", Got: action.Name},
	}
	for _, s := range accepted {
		if want := s.Script.Action.BreakGlassRole; want != action.BreakGlassRole {
			o.Text = "the order does not name the role that the script was accepted with"
			o.Differs = jobspec.Difference{Field: "action.break_glass_role", Want: want, Got: action.BreakGlassRole}
		}
	}
	return refused(o)
}
