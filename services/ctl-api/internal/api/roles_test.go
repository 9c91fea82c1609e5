package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/services/internal/optional"
)

// Nothing runs under a role yet, so no request that names one is started: one
// that the release lacks is answered with the nearest.
func TestRoleOfARequest(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	folder := with(hello(), "permissions/setup.toml", "type = \"maintenance\"\nname = \"{{ .nuon.install.id }}-setup\"\ndisplay_name = \"Setup\"\ndescription = \"Sets up.\"\n")
	folder = with(folder, "break_glass.toml", "[[role]]\nname = \"rescue\"\ndisplay_name = \"Rescue\"\ndescription = \"Rescues.\"\n")
	c.released("hello", with(folder, "actions/repair.toml", "name = \"repair\"\n[[triggers]]\ntype = \"manual\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n"))
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)
	for _, tt := range []struct {
		name, role, code, says, remedy string
	}{
		{"misspelt", "resque", "unknown_role", `the release has no role "resque"; it has: {{ .nuon.id }}-setup, rescue`, `did you mean "rescue"?`},
		{"the plain part of a template", "setup", "unknown_role", "the release has no role", `did you mean "{{ .nuon.id }}-setup"?`},
		{"far from all", "emperor", "unknown_role", "the release has no role", ""},
		{"declared", "rescue", "unsupported", `running under role "rescue" is not supported yet by this version: the runner uses its own identity`, "start it without a role"},
		{"declared, with another path", "{{.nuon.install.id}}-setup", "unsupported", "is not supported yet", "start it without a role"},
	} {
		answers := map[string]answered{}
		for _, kind := range []ctlapi.WorkflowKind{ctlapi.WorkflowKindProvision, ctlapi.WorkflowKindDeploy, ctlapi.WorkflowKindDeprovision} {
			resp, err := c.CreateWorkflowWithResponse(t.Context(), "acme", nil, ctlapi.WorkflowRequest{Kind: kind, Role: tt.role, PlanOnly: kind == ctlapi.WorkflowKindDeploy})
			if err != nil {
				t.Fatal(err)
			}
			answers[string(kind)] = resp
		}
		resp, err := c.RunActionWithResponse(t.Context(), "acme", "repair", nil, ctlapi.ActionRunRequest{Role: tt.role})
		if err != nil {
			t.Fatal(err)
		}
		answers["action"] = resp
		for what, resp := range answers {
			p := problemOf(t, resp, nil, http.StatusUnprocessableEntity, tt.code)
			if remedy := optional.Value(p.Remedy); !strings.Contains(optional.Value(p.Detail), tt.says) || !strings.Contains(remedy, tt.remedy) || tt.remedy == "" && remedy != "" {
				t.Errorf("%s, %s: %q, remedy %q", tt.name, what, optional.Value(p.Detail), remedy)
			}
		}
	}
	if n := d.count(`select count(*) from workflows`); n != 0 {
		t.Errorf("%d workflows were started, want none", n)
	}
}

// The roles of an install are those that its runner told of; an action that needs one that
// is off says so at once, and nobody asks for the actions of a switch.
func TestRolesOfAnInstall(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	folder := with(hello(), "break_glass.toml", "[[role]]\nname = \"{{ .nuon.install.id }}-rescue\"\ndescription = \"Rescues.\"\n")
	synced := c.released("hello", with(folder, "actions/repair.toml", "name = \"repair\"\nbreak_glass_role = \"{{.nuon.install.id}}-rescue\"\n[[triggers]]\ntype = \"manual\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n"))
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)
	exec := func(sql string) {
		t.Helper()
		if _, err := d.db.Admin().Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	exec(`update installs set release_id = '` + synced.Release.ID + `', state = 'live'`)
	ran, err := c.RunActionWithResponse(t.Context(), "acme", "repair", nil, ctlapi.ActionRunRequest{})
	must(t, ran, err, http.StatusAccepted)
	if !strings.Contains(ran.JSON202.Notice, "the runner knows no role") {
		t.Errorf("before the runner told of roles: %q", ran.JSON202.Notice)
	}
	exec(`insert into install_roles (org_id, install_id, written, name, known, kind) select org_id, id, '{{ .nuon.id }}-rescue', 'acme-rescue', true, 'break_glass' from installs`)
	ran, err = c.RunActionWithResponse(t.Context(), "acme", "repair", nil, ctlapi.ActionRunRequest{})
	must(t, ran, err, http.StatusAccepted)
	if ran.JSON202.Notice != "role acme-rescue is off, and only the customer switches it on" {
		t.Errorf("with the role off: %q", ran.JSON202.Notice)
	}
	exec(`insert into role_switches (org_id, install_id, id, role, name, enabled, switched_at, until, switched_by, reason)
		select org_id, id, 'rsw_1', '{{ .nuon.id }}-rescue', 'acme-rescue', true, '2026-03-01T12:00Z', '2026-03-01T14:00Z', 'ada', 'ticket' from installs`)
	exec(`update install_roles set switch_id = 'rsw_1'`)
	list, err := c.ListInstallRolesWithResponse(t.Context(), "acme")
	must(t, list, err, http.StatusOK)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	want := []ctlapi.InstallRole{{
		Name: "acme-rescue", Known: true, Written: "{{ .nuon.id }}-rescue", Kind: "break_glass", On: true, Since: &at, Until: optional.Of(at.Add(2 * time.Hour)),
		SwitchedBy: "ada", Reason: "ticket", Actions: []string{"repair"},
	}}
	if diff := cmp.Diff(want, list.JSON200.Items, cmpopts.EquateApproxTime(0)); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
	ran, err = c.RunActionWithResponse(t.Context(), "acme", "repair", nil, ctlapi.ActionRunRequest{})
	must(t, ran, err, http.StatusAccepted)
	if ran.JSON202.Notice != "" {
		t.Errorf("with the role on: %q", ran.JSON202.Notice)
	}
	shown, err := c.GetInstallWithResponse(t.Context(), "acme")
	must(t, shown, err, http.StatusOK)
	if got := strings.Join(shown.JSON200.RolesOn, " "); got != "acme-rescue" {
		t.Errorf("the install shows %q", got)
	}
	asked, err := c.CreateWorkflowWithResponse(t.Context(), "acme", nil, ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindRoleSwitch})
	if p := problemOf(t, asked, err, http.StatusUnprocessableEntity, "invalid"); !strings.Contains(optional.Value(p.Detail), "by the customer's switch") {
		t.Errorf("somebody asked for the actions of a switch: %s", asked.Body)
	}
}
