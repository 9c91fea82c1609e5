package check

import (
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/customerrole"
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
		if ext := a.Components[i].Berth; ext != nil && ext.Plugin != nil {
			for j, name := range ext.Plugin.Roles {
				v.switchedRole(a.Components[i].At.Below("berth.plugin.roles").Item(j), name)
			}
		}
	}
	if a.OperationRoles != nil {
		for i, r := range a.OperationRoles.Rules {
			v.role(place.Error, a.OperationRoles.At.Below("rules").Item(i).Below("role"), r.Role)
		}
	}
	for i := range a.Actions {
		v.role(place.Warning, a.Actions[i].At.Below("role"), a.Actions[i].Role)
		v.breakGlassRole(a.Actions[i].At.Below("break_glass_role"), a.Actions[i].BreakGlassRole)
	}
	for i := range a.Runbooks {
		r := &a.Runbooks[i]
		v.role(place.Warning, r.At.Below("role"), r.Role)
		for j := range r.Steps {
			v.role(place.Warning, r.At.Below("steps").Item(j).Below("role"), r.Steps[j].Role)
		}
	}
}

func (v *validator) operationRoleNames(block place.Place, roles []appconfig.OperationRole) {
	for i, r := range roles {
		v.role(place.Warning, block.Below("operation_roles").Item(i).Below("role"), r.Role)
	}
}

func (v *validator) role(severity place.Severity, at place.Place, name string) {
	v.anyRole(severity, at, name, roleNames("role", v.app.Permissions, v.app.BreakGlass))
}

func (v *validator) breakGlassRole(at place.Place, name string) {
	var permitted []appconfig.Role
	for _, r := range v.app.Permissions {
		if r.Type == appconfig.RoleBreakGlass {
			permitted = append(permitted, r)
		}
	}
	v.anyRole(place.Warning, at, name, roleNames("break-glass role", v.app.BreakGlass, permitted))
}

// switchedRole is one that the customer switches: a runner knows no other.
func (v *validator) switchedRole(at place.Place, name string) {
	switched := slices.DeleteFunc(slices.Clone(v.app.Permissions), func(r appconfig.Role) bool {
		return r.Type != appconfig.RoleBreakGlass && r.Type != appconfig.RoleCustom
	})
	v.anyRole(place.Error, at, name, roleNames("break-glass or custom role", v.app.BreakGlass, switched))
}

// anyRole compares names as they are written, since most are templates. One that
// a component, an action or a runbook names and nothing declares is a warning:
// the customer may have it. A full name of the cloud's (an ARN) is not looked for.
func (v *validator) anyRole(severity place.Severity, at place.Place, name string, d definedNames) {
	written := customerrole.Canonical(name)
	if strings.Contains(written, ":") {
		return
	}
	if name == "" || v.mayDefine(d, written) {
		return
	}
	missing := v.At(severity, place.CodeReference, at, "%s %q does not exist", d.what, name)
	if near := nearestRole(v.Near, written, d.names); near != "" {
		missing = missing.WithRemedy("did you mean %q?", near)
	}
	v.Diags = append(v.Diags, missing)
}

// nearestRole finds the role that a name most likely means, as it is written or
// by the part of it that is no template: "setup" of "{{ .nuon.install.id }}-setup".
func nearestRole(nearest func(string, []string) string, name string, defined []string) string {
	if near := nearest(name, defined); near != "" {
		return near
	}
	plain := map[string]string{}
	for _, d := range defined {
		plain[customerrole.Plain(d)] = d
	}
	delete(plain, "")
	return plain[nearest(customerrole.Plain(name), slices.Sorted(maps.Keys(plain)))]
}

// FindRole looks for a role that an app declares, by its name as the app writes
// it. near is the one that is meant most likely when there is none, "" when no
// name is near; all are the names that there are.
func FindRole(app *appconfig.App, name string) (found bool, near string, all []string) {
	all = roleNames("role", app.Permissions, app.BreakGlass).names
	written := customerrole.Canonical(name)
	if slices.Contains(all, written) {
		return true, "", all
	}
	return false, nearestRole(place.Nearest, written, all), all
}

func roleNames(what string, first, second []appconfig.Role) definedNames {
	return namesOf(what, slices.Concat(first, second), func(r *appconfig.Role) string { return customerrole.Canonical(r.Name) }, "permissions", "break_glass")
}

// roles checks what the roles of an app have in common with its runner.
func (v *validator) roles() {
	once := v.once("role")
	platform := ""
	if v.app.Runner != nil {
		platform = v.app.Runner.Platform()
	}
	only := map[appconfig.RoleType]place.Place{}
	for _, list := range [][]appconfig.Role{v.app.Permissions, v.app.BreakGlass} {
		for i := range list {
			r := &list[i]
			once(r.At, r.Name)
			v.rolePlatform(r, platform)
			if r.Type == appconfig.RoleCustom || r.Type == appconfig.RoleBreakGlass || r.Type == "" {
				continue
			}
			if first, twice := only[r.Type]; twice {
				v.Add(place.Error, place.CodeDuplicate, r.At.Below("type"), "the %s role is already defined at %s", r.Type, v.Origin.Where(first))
				continue
			}
			only[r.Type] = r.At
		}
	}
}

func (v *validator) rolePlatform(r *appconfig.Role, platform string) {
	if platform == "" {
		return
	}
	if r.CloudPlatform != "" && r.CloudPlatform != platform {
		v.Add(place.Error, place.CodeValue, r.At.Below("cloud_platform"), "role %q is for %s, and the runner runs in %s", r.Name, r.CloudPlatform, platform)
		return
	}
	for i := range r.Policies {
		clouds, keys := r.Policies[i].Platforms()
		if len(clouds) == 1 && clouds[0] != platform {
			v.Add(place.Warning, place.CodeValue, r.At.Below("policies").Item(i).Below(keys[0]), "%s is of %s, and the runner runs in %s", keys[0], clouds[0], platform)
		}
	}
}

// operationRoles checks that the principals exist.
func (v *validator) operationRoles() {
	if v.app.OperationRoles == nil {
		return
	}
	actions := v.actionNames()
	for i, r := range v.app.OperationRoles.Rules {
		at := v.app.OperationRoles.At.Below("rules").Item(i).Below("principal")
		switch kind, name := r.Who(); {
		case name == appconfig.AnyPrincipal:
		case kind == appconfig.PrincipalComponent:
			v.exists(at, name, v.components())
		case kind == appconfig.PrincipalAction:
			v.exists(at, name, actions)
		}
	}
}
