package roles_test

import (
	"testing"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/customerrole"
	"github.com/berth-dev/berth/services/ctl-api/internal/roles"
	"github.com/berth-dev/berth/services/internal/model"
)

var known = roles.Known{
	{Role: customerrole.Role{Written: "{{ .nuon.id }}-repair", Name: "acme-repair", Known: true}},
	{Role: customerrole.Role{Written: "audit", Name: "audit", Known: true}, On: true},
	{Role: customerrole.Role{Written: "{{ .nuon.sandbox.outputs.x }}", Name: "{{ .nuon.sandbox.outputs.x }}"}},
}

func TestHold(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, role string
		reason     model.WaitReason // "" for none
		on         string
	}{
		{"on", "audit", "", ""},
		{"off", "{{.berth.install.id}}-repair", model.WaitRoleOff, "acme-repair"},
		{"off, by the name that it has here", "acme-repair", model.WaitRoleOff, "acme-repair"},
		{"nobody declares it", "adit", model.WaitRoleUnknown, "adit"},
		{"its name is not known", "{{ .nuon.sandbox.outputs.x }}", model.WaitRoleUnknown, "{{ .nuon.sandbox.outputs.x }}"},
	} {
		hold := known.Hold(tc.role)
		if (hold == nil) != (tc.reason == "") || hold != nil && (hold.Reason != tc.reason || hold.On != tc.on || hold.Text == "" || !hold.Until.IsZero()) {
			t.Errorf("%s: %+v, want %q on %q", tc.name, hold, tc.reason, tc.on)
		}
	}
}

func TestStarts(t *testing.T) {
	t.Parallel()
	app := func(role string, triggers ...appconfig.TriggerType) *appconfig.App {
		a := appconfig.Action{Name: "a", BreakGlassRole: role}
		for _, trigger := range triggers {
			a.Triggers = append(a.Triggers, appconfig.Trigger{Type: trigger})
		}
		return &appconfig.App{Actions: []appconfig.Action{{Name: "other", Triggers: []appconfig.Trigger{{Type: "post-provision"}}}, a}}
	}
	const enabled, disabled = appconfig.TriggerRoleEnabled, appconfig.TriggerRoleDisabled
	on, off := roles.Switch{Role: "audit", On: true}, roles.Switch{Role: "audit"}
	for _, tc := range []struct {
		name string
		sw   roles.Switch
		app  *appconfig.App
		want bool
	}{
		{"no role of its own: any", on, app("", enabled), true},
		{"of this role", on, app("audit", enabled), true},
		{"of another role", on, app("{{ .nuon.id }}-repair", enabled), false},
		{"of another role that nobody knows", on, app("gone", enabled), false},
		{"the other trigger", on, app("audit", disabled), false},
		{"off", off, app("audit", disabled), true},
		{"both", off, app("audit", enabled, disabled), true},
		{"by hand only", off, app("audit", appconfig.TriggerManual), false},
		{"off, because the release has it no more", roles.Switch{Role: "gone"}, app("gone", disabled), true},
	} {
		if got := known.Starts(tc.sw, tc.app); got != tc.want {
			t.Errorf("%s: %t", tc.name, got)
		}
	}
}
