package orders_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/customerrole"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
)

func TestRolesOfAnApp(t *testing.T) {
	t.Parallel()
	app := &appconfig.App{
		BreakGlass: []appconfig.Role{{Type: appconfig.RoleBreakGlass, Name: "{{.nuon.install.id}}-repair", DisplayName: "Repair", Description: "Repairs."}},
		Permissions: []appconfig.Role{
			{Type: appconfig.RoleProvision, Name: "provision"}, {Type: appconfig.RoleMaintenance, Name: "maintenance"}, {Type: appconfig.RoleDeprovision, Name: "deprovision"},
			{Type: appconfig.RoleCustom, Name: "audit"},
		},
	}
	want := []customerrole.Role{
		{Name: "{{ .nuon.id }}-repair", Written: "{{ .nuon.id }}-repair", Kind: customerrole.BreakGlass, DisplayName: "Repair", Description: "Repairs."},
		{Name: "audit", Written: "audit", Kind: customerrole.Custom},
	}
	if diff := cmp.Diff(want, orders.Roles(app)); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
}

// A script says which role it needs, and whether it also runs when that went off; both
// are part of what is accepted.
func TestScriptsThatNeedARole(t *testing.T) {
	t.Parallel()
	action := func(role string, triggers ...appconfig.TriggerType) appconfig.Action {
		a := appconfig.Action{Name: "repair", BreakGlassRole: role, Steps: []appconfig.Step{{Name: "s", Command: "true"}}}
		for _, trigger := range triggers {
			a.Triggers = append(a.Triggers, appconfig.Trigger{Type: trigger})
		}
		return a
	}
	digests := map[string]bool{}
	for _, tc := range []struct {
		name    string
		action  appconfig.Action
		role    string
		whenOff bool
	}{
		{"no role", action("", appconfig.TriggerRoleDisabled), "", false},
		{"a role", action("{{.nuon.install.id}}-x", appconfig.TriggerManual), "{{ .nuon.id }}-x", false},
		{"another role", action("y", appconfig.TriggerRoleEnabled), "y", false},
		{"when it went off", action("y", appconfig.TriggerRoleEnabled, appconfig.TriggerRoleDisabled), "y", true},
	} {
		list, err := orders.Scripts(&appconfig.App{Actions: []appconfig.Action{tc.action}})
		if err != nil || len(list) != 1 {
			t.Fatal(err, list)
		}
		if got := list[0]; got.Action.BreakGlassRole != tc.role || got.WhenRoleIsOff != tc.whenOff {
			t.Errorf("%s: role %q, when off %t", tc.name, got.Action.BreakGlassRole, got.WhenRoleIsOff)
		}
		digest, err := list[0].Digest()
		if err != nil || digests[digest] {
			t.Errorf("%s: it has the digest of another one, %v", tc.name, err)
		}
		digests[digest] = true
		list[0].Action.SwitchedOff = "rsw_1"
		if again, _ := list[0].Digest(); again != digest {
			t.Errorf("%s: what a run brings changes the digest", tc.name)
		}
	}
}
