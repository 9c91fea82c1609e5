// Package roles decides what follows from the roles that customers switch: which step
// waits for one, and which actions a switch starts. Whether an action really runs is
// decided by the install's runner, which takes nothing that is said here for a switch.
package roles

import (
	"fmt"
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/customerrole"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Known are the roles of an install, as its runner told of them.
type Known []Role

// Role is one of them.
type Role struct {
	customerrole.Role
	On bool
}

// Of are the roles that rows tell of.
func Of(rows []ctldb.RolesOfInstallRow) (k Known) {
	for _, row := range rows {
		r := row.InstallRole
		k = append(k, Role{On: r.SwitchID != nil, Role: customerrole.Role{
			Name: r.Name, Known: r.Known, Written: r.Written, Kind: customerrole.Kind(r.Kind), DisplayName: r.DisplayName, Description: r.Description,
		}})
	}
	return k
}

// Find finds the role that an action names, by its text in the app.
func (k Known) Find(written string) (Role, bool) {
	var list []customerrole.Role
	for _, r := range k {
		list = append(list, r.Role)
	}
	found, ok := customerrole.Find(list, written)
	if !ok {
		return Role{}, false
	}
	return k[slices.IndexFunc(k, func(r Role) bool { return r.Written == found.Written })], true
}

// Hold is why a change that needs a role is not carried out now; nil when the role is on.
func (k Known) Hold(written string) *flow.Hold {
	role, found := k.Find(written)
	switch {
	case !found:
		var names []string
		for _, r := range k {
			names = append(names, r.Name)
		}
		return &flow.Hold{Reason: model.WaitRoleUnknown, On: written,
			Text: fmt.Sprintf("the runner knows no role %s: no release that it accepted declares it%s", written, place.Meant(written, names))}
	case !role.Known:
		return &flow.Hold{Reason: model.WaitRoleUnknown, On: written,
			Text: fmt.Sprintf("the name of its role, %s, is rendered from what the install did not have when its release was accepted", written)}
	case !role.On:
		return &flow.Hold{Reason: model.WaitRoleOff, On: role.Name, Text: fmt.Sprintf("role %s is off, and only the customer switches it on", role.Name)}
	}
	return nil
}

// Switch is one time that a role was switched.
type Switch struct {
	ID   string `json:"id"`
	Role string `json:"role"` // as the app writes it
	Name string `json:"name"`
	On   bool   `json:"on"`
}

// Trigger is the trigger that a switch fires.
func (s Switch) Trigger() appconfig.TriggerType {
	if s.On {
		return appconfig.TriggerRoleEnabled
	}
	return appconfig.TriggerRoleDisabled
}

// About says whether a switch is of the role of an action: of its break-glass role or,
// for an action that has none, of any.
func (k Known) About(s Switch, a *appconfig.Action) bool {
	if a.BreakGlassRole == "" {
		return true
	}
	if role, found := k.Find(a.BreakGlassRole); found {
		return role.Written == s.Role
	}
	return customerrole.Canonical(a.BreakGlassRole) == s.Role // the release of now has it no more
}

// Starts says whether a switch starts any action of an app.
func (k Known) Starts(s Switch, app *appconfig.App) bool {
	return slices.ContainsFunc(app.Actions, func(a appconfig.Action) bool {
		fired := func(t appconfig.Trigger) bool { return t.Type == s.Trigger() }
		return slices.ContainsFunc(a.Triggers, fired) && k.About(s, &a)
	})
}

// On are the names of the roles that are on.
func (k Known) On() (names []string) {
	for _, r := range k {
		if r.On {
			names = append(names, r.Name)
		}
	}
	return names
}
