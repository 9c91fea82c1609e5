package appconfig

import (
	"regexp"
	"slices"
	"strings"
)

// roleNames checks that every role that something runs under is one of the
// app's own.
func (v *validator) roleNames() {
	a := v.app
	if a.Sandbox != nil {
		v.operationRoleNames(a.Sandbox.At, a.Sandbox.OperationRoles)
	}
	for i := range a.Components {
		v.operationRoleNames(a.Components[i].At, a.Components[i].OperationRoles)
	}
	if a.OperationRoles != nil {
		for i, r := range a.OperationRoles.Rules {
			v.role(a.OperationRoles.At.key("rules").item(i).key("role"), r.Role)
		}
	}
	for i := range a.Actions {
		v.role(a.Actions[i].At.key("role"), a.Actions[i].Role)
		v.breakGlassRole(a.Actions[i].At.key("break_glass_role"), a.Actions[i].BreakGlassRole)
	}
	for i := range a.Runbooks {
		r := &a.Runbooks[i]
		v.role(r.At.key("role"), r.Role)
		for j := range r.Steps {
			v.role(r.At.key("steps").item(j).key("role"), r.Steps[j].Role)
		}
	}
}

func (v *validator) operationRoleNames(block Place, roles []OperationRole) {
	for i, r := range roles {
		v.role(block.key("operation_roles").item(i).key("role"), r.Role)
	}
}

func (v *validator) role(at Place, name string) {
	v.anyRole(at, "role", name, append(rolesIn(v.app.Permissions), rolesIn(v.app.BreakGlass)...), "permissions", "break_glass")
}

func (v *validator) breakGlassRole(at Place, name string) {
	var permitted []Role
	for _, r := range v.app.Permissions {
		if r.Type == RoleBreakGlass {
			permitted = append(permitted, r)
		}
	}
	v.anyRole(at, "break-glass role", name, append(rolesIn(v.app.BreakGlass), rolesIn(permitted)...), "permissions", "break_glass")
}

// anyRole compares names as they are written, since most are templates. Where
// one is, a name that is not found may still turn out to be right: that is a
// warning. A full name of the cloud's (an ARN) is not looked for.
func (v *validator) anyRole(at Place, what, name string, defined []string, kinds ...string) {
	written := comparableRole(name)
	if strings.Contains(written, ":") {
		return
	}
	if name == "" || slices.Contains(defined, written) || v.partlyUnreadable(kinds...) {
		return
	}
	severity := Error
	if strings.Contains(written, "{{") {
		severity = Warning
	}
	d := v.at(severity, CodeReference, at, "%s %q does not exist", what, name)
	v.diags = append(v.diags, v.suggest(d, written, defined))
}

func rolesIn(roles []Role) []string {
	var names []string
	for _, r := range roles {
		names = append(names, comparableRole(r.Name))
	}
	return names
}

var (
	aroundAction = regexp.MustCompile(`\{\{-?\s*(.*?)\s*-?\}\}`)
	samePath     = strings.NewReplacer(".berth.", ".nuon.", ".nuon.install.id", ".nuon.id", ".berth.install.id", ".nuon.id")
)

// comparableRole writes what means the same in the same way.
func comparableRole(name string) string {
	return samePath.Replace(aroundAction.ReplaceAllString(name, "{{ $1 }}"))
}
